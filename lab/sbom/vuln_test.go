package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Without the database make vuln fails, although a govulncheck that finds nothing is installed.
func TestVuln_UnreachableDatabaseIsNoCleanResult(t *testing.T) {
	bin := t.TempDir()
	ran := filepath.Join(bin, "ran")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "govulncheck"),
		[]byte("#!/bin/sh\ntouch '"+ran+"'\n"), 0o700))
	cmd := exec.Command("make", "-C", "../..", "vuln", "BIN="+bin, "VULNDB=http://127.0.0.1:1")
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "MAKELEVEL=0")
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed, "%s", out)
	require.Contains(t, string(out), "NOT CHECKED")
	require.NoFileExists(t, ran)
}
