package crdt

import (
	"fmt"

	"github.com/concord-go/concord/internal/causal"
)

func (v view) appendBinary(dst []byte) ([]byte, error) {
	v = v.alone()
	return causal.AppendState(dst, v.store, v.seen)
}

// decodeView decodes a value with the tag.
func decodeView(src []byte, tag causal.Tag) (view, error) {
	s, seen, err := causal.ParseState(src)
	if err != nil {
		return view{}, err
	}
	if err := checkType(s, "", tag); err != nil {
		return view{}, err
	}
	for path, e := range s.Prefix("") {
		for l := range e.All() {
			if !seen.Covers(l.Dot) {
				return view{}, fmt.Errorf("%w: %v at %d bytes of path not seen", ErrMalformed, l.Dot, len(path))
			}
		}
	}
	return view{store: s, seen: seen}, nil
}
