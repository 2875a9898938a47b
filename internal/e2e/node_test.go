//go:build interop || conformance

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// nodeCommand runs a file of interop with Node, in an environment that holds nothing of this machine.
func nodeCommand(t *testing.T, home, file string, args ...string) *exec.Cmd {
	t.Helper()
	node := os.Getenv("NODE")
	if node == "" {
		t.Fatal("NODE is not set: run `make interop` or `make conformance`, which find it")
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{filepath.FromSlash(file)}, args...)...)
	cmd.Dir = "interop"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "NO_COLOR=1"}
	return cmd
}
