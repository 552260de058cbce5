//go:build unix

package main

import (
	"os"
	"syscall"
)

// ownGroup puts a child process into a group of its own, so that signals from the terminal pass it by.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// freeze stops a process where it is, as a suspended machine does; thaw lets it go on.
func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error   { return p.Signal(syscall.SIGCONT) }
