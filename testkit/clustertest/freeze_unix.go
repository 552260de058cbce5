//go:build unix

package clustertest

import "syscall"

// freeze stops the process until thaw.
func (p *process) freeze() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

func (p *process) thaw() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
