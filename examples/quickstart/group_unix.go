//go:build unix

package main

import "syscall"

// ownGroup puts a child process into a group of its own, so that signals from the terminal pass it by.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
