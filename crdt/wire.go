package crdt

import "github.com/concord-go/concord/internal/causal"

// AppendBinary appends the canonical encoding: equal states have equal bytes. For a value that a
// replicator handed out the encoding names only the replicas that its atoms name, not all that the
// replicator knows.
func (v view) AppendBinary(dst []byte) ([]byte, error) {
	a := v.alone()
	if v.line != 0 {
		a.seen = a.store.Named(a.seen)
	}
	return causal.AppendState(dst, a.store, a.seen)
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
