// What this file adds works without it, by a full page load. Nothing here decides anything.
"use strict";

// Copy buttons are hidden until there is something that can copy.
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) break;
  button.hidden = false;
  const label = button.querySelector("[data-label]");
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    label.textContent = button.dataset.copied;
    setTimeout(() => { label.textContent = ""; }, 2000);
  });
}

// A link to a question opens the same question in place.
for (const link of document.querySelectorAll("a[data-dialog]")) {
  const dialog = document.getElementById(link.dataset.dialog);
  if (!dialog || !dialog.showModal) continue;
  link.setAttribute("role", "button");
  link.setAttribute("aria-haspopup", "dialog");
  const open = (event) => {
    event.preventDefault();
    dialog.showModal();
  };
  link.addEventListener("click", open);
  link.addEventListener("keydown", (event) => { if (event.key === " ") open(event); });
}

// Browsers that do not know invoker commands yet.
if (!("command" in HTMLButtonElement.prototype)) {
  for (const button of document.querySelectorAll("button[command=close]")) {
    button.addEventListener("click", () => document.getElementById(button.getAttribute("commandfor")).close());
  }
}

// What was just done is said once: not again after a reload, and not for longer than it takes to read.
for (const toast of document.querySelectorAll(".toast")) {
  const address = new URL(location.href);
  address.searchParams.delete("done");
  history.replaceState(null, "", address);
  setTimeout(() => toast.remove(), 6000);
}

// A pause counts down.
for (const clock of document.querySelectorAll("[data-countdown]")) {
  const end = Date.now() + Number(clock.dataset.countdown) * 1000;
  const timer = setInterval(() => {
    const left = Math.max(0, Math.ceil((end - Date.now()) / 1000));
    clock.textContent = Math.floor(left / 60) + ":" + String(left % 60).padStart(2, "0");
    if (left === 0) clearInterval(timer);
  }, 250);
}

// The set-up page starts with the zone that this computer is in.
for (const zone of document.querySelectorAll("select[data-guess-zone]")) {
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (Array.from(zone.options, (option) => option.value).includes(here)) zone.value = here;
}
