//go:build !linux

package node

import "errors"

const canReexec = false

func reexec() error { return errors.New("node: this operating system has no re-exec") }
