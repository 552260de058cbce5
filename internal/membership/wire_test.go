package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/wire"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

var (
	hdr   = wire.Header{Cluster: "shop", Member: "m1", From: 7, To: 9}
	greet = hello{address: "a:1", sequence: 1, stamp: 2, maxStamp: 3, viewHash: 4, listsYou: true, answer: true}
)

func TestHelloSurvivesTheWire(t *testing.T) {
	env, err := encode(hdr, greet)
	require.NoError(t, err)
	r, err := decode(env, "shop")
	require.NoError(t, err)
	require.Equal(t, received{member: "m1", from: 7, to: 9, hello: greet}, r)
}

// Nodes of other versions read this for ever.
func TestHelloFixture(t *testing.T) {
	env, err := encode(hdr, greet)
	require.NoError(t, err)
	require.Equal(t, "0a03613a311001190200000000000000210300000000000000290400000000000000300138"+"01", fmt.Sprintf("%x", env.Payload))
}

func FuzzDecode(f *testing.F) {
	env, _ := encode(hdr, greet)
	f.Add(env.Payload)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		r, err := decode(wire.Seal(hdr, wire.MembershipHello, payload), "shop")
		if err != nil {
			return
		}
		again, err := encode(hdr, r.hello)
		if err != nil {
			t.Fatal(err)
		}
		if r2, err := decode(again, "shop"); err != nil || r2 != r {
			t.Fatalf("%+v is not %+v: %v", r2, r, err)
		}
		if !proto.Equal(again, wire.Seal(hdr, wire.MembershipHello, again.Payload)) {
			t.Fatal("envelope changed")
		}
		// Whatever it says, the core takes it.
		c := newCore(defaultSettings(), "shop", "b:1", "", 9)
		for _, e := range []event{at("b", "m1"), r, r, tick{}} {
			c.step(time.UnixMilli(1_000_000), e)
		}
	})
}
