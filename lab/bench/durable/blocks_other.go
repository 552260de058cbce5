//go:build !unix

package main

import "errors"

func blocks(string) (int64, error) { return 0, errors.ErrUnsupported }
