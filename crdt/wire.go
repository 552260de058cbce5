package crdt

import "github.com/concord-go/concord/internal/causal"

func (v view) appendBinary(dst []byte) ([]byte, error) {
	v = v.alone()
	return causal.AppendState(dst, v.store, v.seen)
}

// decodeView decodes a value with the tag.
func decodeView(src []byte, tag causal.Tag) (view, error) {
	s, seen, err := causal.ParseValue(src)
	if err != nil {
		return view{}, err
	}
	if err := checkType(s, "", tag); err != nil {
		return view{}, err
	}
	return view{store: s, seen: seen}, nil
}
