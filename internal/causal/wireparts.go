package causal

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/concord-go/concord/internal/field"
)

// The parts that values (proto/crdt.proto) and what replicas tell each other (proto/replication.proto) are both
// made of have one form. Replicas are told by their index in the table of the message.

// AppendAdd appends the fields of an added atom; its dot is that of the event.
func AppendAdd(b []byte, path, payload string) []byte {
	return field.Text(field.Text(b, 1, path), 2, payload)
}

// AppendName appends the fields that name an atom.
func AppendName(b []byte, path string, replica, n uint64) []byte {
	return field.Number(field.Number(field.Text(b, 1, path), 2, replica), 3, n)
}

// AppendLeaf appends dot and payload of an atom, as the fields from num on.
func AppendLeaf(b []byte, num protowire.Number, replica uint64, l Leaf) []byte {
	b = field.Number(b, num, replica)
	b = field.Number(b, num+1, l.N)
	return field.Text(b, num+2, l.Payload)
}

// AppendMark appends the fields of a mark, which the event of replica by has made.
func AppendMark(b []byte, path string, m Mark, by uint64) []byte {
	b = field.Text(b, 1, path)
	b = field.Number(b, 2, m.N)
	b = field.Number(b, 3, m.Plus)
	b = field.Number(b, 4, m.Minus)
	b = field.Number(b, 5, by)
	return field.Number(b, 6, m.By.N)
}
