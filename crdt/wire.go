package crdt

import "github.com/concord-go/concord/internal/causal"

func (v view) appendBinary(dst []byte) ([]byte, error)          { panic("next") }
func decodeView(src []byte, tag causal.Tag) (v view, err error) { panic("next") }
