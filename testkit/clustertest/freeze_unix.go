//go:build unix

package clustertest

import "syscall"

// freeze stops the process until thaw is called.
func (p *process) freeze() error { return p.Signal(syscall.SIGSTOP) }

func (p *process) thaw() error { return p.Signal(syscall.SIGCONT) }
