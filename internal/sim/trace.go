package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"time"
)

// trace is the record of a history: always a hash, and the lines if they are kept.
type trace struct {
	hash  hash.Hash
	keep  bool
	lines []string
	buf   []byte
}

func newTrace(keep bool) *trace { return &trace{hash: sha256.New(), keep: keep} }

func (t *trace) sum() [sha256.Size]byte { return [sha256.Size]byte(t.hash.Sum(nil)) }

func (t *trace) note(now time.Duration, format string, args []any) {
	if t.keep {
		line := fmt.Sprintf("%12v  "+format, append([]any{now}, args...)...)
		t.lines = append(t.lines, line)
	}
	b := binary.LittleEndian.AppendUint64(t.buf[:0], uint64(now))
	b = append(append(b, format...), 0)
	for _, a := range args {
		b = append(appendValue(b, a), 0)
	}
	t.buf = b
	t.hash.Write(b)
}

// appendValue is like fmt.Append, with fast paths for common types.
func appendValue(b []byte, a any) []byte {
	switch a := a.(type) {
	case string:
		return append(b, a...)
	case int:
		return binary.LittleEndian.AppendUint64(b, uint64(a))
	case uint64:
		return binary.LittleEndian.AppendUint64(b, a)
	case fmt.Stringer:
		return append(b, a.String()...)
	}
	return fmt.Append(b, a)
}
