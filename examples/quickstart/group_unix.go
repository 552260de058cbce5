//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// ownGroup puts a child process into its own process group, so that it does not receive signals
// from the terminal.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// freeze stops a process like a suspended machine; thaw lets it continue.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error   { return p.Signal(syscall.SIGCONT) }

// readQuietly makes a read from the terminal fail in a background process, instead of stopping it.
func readQuietly() { signal.Ignore(syscall.SIGTTIN) }
