//go:build !unix

package main

import (
	"errors"
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr { return nil }

var errNoFreeze = errors.New("-kill freeze needs signals that this operating system does not have")

func freeze(*os.Process) error { return errNoFreeze }
func thaw(*os.Process) error   { return errNoFreeze }

func readQuietly() {}
