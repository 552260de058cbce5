package acceptance

import (
	"encoding/binary"
	"testing"

	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/testkit/crdttest"
	"github.com/concord-go/concord/testkit/leasetest"
)

// peak is a replicated type of the user's: the highest number ever seen.
type peak struct{ n uint64 }

func (p peak) Merge(o peak) peak { return peak{max(p.n, o.n)} }

func (p peak) AppendBinary(b []byte) ([]byte, error) {
	return binary.BigEndian.AppendUint64(b, p.n), nil
}

func (p peak) Decode(b []byte) (peak, error) {
	n, err := decodePeak(b)
	return peak{n}, err
}

func decodePeak(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, crdt.ErrMalformed
	}
	return binary.BigEndian.Uint64(b), nil
}

func TestType_KeepsTheLaws(t *testing.T) {
	crdttest.Run(t, crdttest.Type[peak]{
		Change: func(d *crdttest.Draw, _ *crdt.Writer, p *peak) []crdttest.Effect {
			p.n = max(p.n, uint64(d.Int("n", 1, 100)))
			return nil
		},
	})
}

func TestStore_KeepsTheContract(t *testing.T) {
	leasetest.Run(t, func(*testing.T) leasestore.Store {
		return struct{ leasestore.Store }{memory.New()}
	}, leasetest.Options{})
}
