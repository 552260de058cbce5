package causal

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/internal/field"
)

// Values (proto/crdt.proto) and the messages between replicas (proto/replication.proto) share the
// parts below, in one form. Replicas are encoded as an index into the table of the message.

// AppendAdd appends the fields of an added atom; its dot is that of the event.
func AppendAdd(b []byte, path, payload string) []byte {
	return field.Text(field.Text(b, 1, path), 2, payload)
}

// AppendName appends the fields that identify an atom.
func AppendName(b []byte, path string, replica, n uint64) []byte {
	return field.Number(field.Number(field.Text(b, 1, path), 2, replica), 3, n)
}

// AppendLeaf appends the dot and the payload of an atom, in the fields starting at num.
func AppendLeaf(b []byte, num protowire.Number, replica uint64, l Leaf) []byte {
	b = field.Number(b, num, replica)
	b = field.Number(b, num+1, l.N)
	return field.Text(b, num+2, l.Payload)
}

// AppendMark appends the fields of a mark made by an event of replica by.
func AppendMark(b []byte, path string, m Mark, by uint64) []byte {
	b = field.Text(b, 1, path)
	b = field.Number(b, 2, m.N)
	b = field.Number(b, 3, m.Plus)
	b = field.Number(b, 4, m.Minus)
	b = field.Number(b, 5, by)
	return field.Number(b, 6, m.By.N)
}
