package cockpit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// Values selects entries whose values are shown. Use ValuesOf to create one.
type Values struct {
	prefix string
	text   func(ctx context.Context, r *distributeddata.Replicator, key string) (string, error)
}

// ValuesOf returns a Values for the entries under a prefix. The cockpit formats their values with
// fmt.Sprint, one entry per request, and shows no entry that is larger than 64 KiB or has more than
// 256 elements.
func ValuesOf[T crdt.Value[T]](p distributeddata.Prefix[T]) Values {
	return Values{p.String(), func(ctx context.Context, r *distributeddata.Replicator,
		key string) (string, error) {
		v, err := p.Key(strings.TrimPrefix(key, p.String())).Get(ctx, r)
		if err != nil {
			return "", err
		}
		return fmt.Sprint(v), nil
	}}
}

// Bounds of values that are shown, in bytes.
const (
	maxShown     = 64 << 10 // the entry
	maxShownText = 16 << 10 // the text
)

// shows returns the Values for an entry: the one with the longest matching prefix, and the last one
// if several have that prefix.
func (h *Handler) shows(key string) (v Values, ok bool) {
	for _, c := range h.cfg.Values {
		if strings.HasPrefix(key, c.prefix) && (!ok || len(c.prefix) >= len(v.prefix)) {
			v, ok = c, true
		}
	}
	return v, ok
}

// errTooLarge is returned if a value is too large to be shown.
var errTooLarge = errors.New("the value is too large to be shown")

// value returns the value of an entry as text.
func (h *Handler) value(ctx context.Context, r *distributeddata.Replicator, key string,
	v Values) (text string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the value cannot be shown: %v", p)
		}
	}()
	for e := range r.Snapshot().Entries(key, key) {
		if e.Key == key && e.Bytes > maxShown {
			return "", errTooLarge
		}
		break
	}
	return v.text(ctx, r, key)
}
