// What every script says to the Go test that started it, one JSON object a line: a step it took, or a favour it asks
// for and waits for (a person to go to an address, an administrator to revoke, the clock to run on).
import { createInterface } from 'node:readline';
import { writeSync } from 'node:fs';

/** What the test says about the server and the variant, as JSON in one argument. */
export const setup = JSON.parse(process.argv[2]);

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// writeSync: process.exit does not wait for what is still in a pipe.
function say(message) {
  writeSync(1, `${JSON.stringify(message)}\n`);
}

async function ask(favour) {
  say(favour);
  const { value, done } = await answers.next();
  if (done) throw new Error('the test hung up');
  return JSON.parse(value);
}

/** A person goes to an authorization URL and comes back to the redirect URI: the URL they come back to. */
export async function person(url) {
  return new URL((await ask({ open: String(url) })).location);
}

/** An administrator revokes every connection. */
export const administratorRevokes = () => ask({ favour: 'revoke' });

/** Every access token that is out there ends, as it would by itself in an hour. */
export const accessTokensEnd = () => ask({ favour: 'end access tokens' });

/** How often the person was asked so far. */
export const timesAsked = async () => (await ask({ favour: 'count' })).asked;

/** The client can do this. */
export const yes = (step) => say({ step, ok: true });

/** The client cannot do this, for a reason of its own. */
export const no = (step, why) => say({ step, ok: false, why });

/** What has to hold, or the script ends and the test with it. */
export function must(condition, what) {
  if (!condition) throw new Error(what);
}

/** The error that something ends with; it has to end with one. */
export async function failure(promise, what) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`${what} succeeded: ${JSON.stringify(value)}`);
}

/** Runs a script and ends the process: clients leave timers and sockets behind. */
export async function run(script) {
  try {
    await script();
  } catch (error) {
    process.stderr.write(`${error?.stack ?? error}\n${error?.cause ? `cause: ${error.cause?.stack ?? JSON.stringify(error.cause)}\n` : ''}`);
    process.exit(1);
  }
  process.exit(0);
}
