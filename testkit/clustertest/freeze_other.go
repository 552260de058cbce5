//go:build !unix

package clustertest

import "errors"

// freeze fails. Add P16 to Config.Except on this system.
func (p *process) freeze() error {
	return errors.New("P16: processes cannot be stopped on this system")
}

func (p *process) thaw() error { return nil }
