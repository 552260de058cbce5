package membership

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/concord-go/concord/internal/wire"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

var (
	hdr   = wire.Header{Cluster: "shop", Member: "m1", From: 7, To: 9}
	greet = hello{address: "a:1", sequence: 1, stamp: 2, maxStamp: 3, viewHash: 4,
		listsYou: true, answer: true}
)

func TestHelloSurvivesTheWire(t *testing.T) {
	env, err := encode(hdr, greet)
	require.NoError(t, err)
	r, err := decode(env, "shop")
	require.NoError(t, err)
	require.Equal(t, received{member: "m1", from: 7, to: 9, hello: greet}, r)
}

func TestHelloOfASplitSurvivesTheWire(t *testing.T) {
	h := greet
	h.claim = claim{size: 5, oldest: 6, mark: 9, arbiter: true, disowned: true}
	h.droppedYou, h.yield, h.permit, h.declined, h.leaving = true, true, 7, 8, true
	env, err := encode(hdr, h)
	require.NoError(t, err)
	r, err := decode(env, "shop")
	require.NoError(t, err)
	require.Equal(t, received{member: "m1", from: 7, to: 9, hello: h}, r)
	require.Equal(t, "0a03613a3110011902000000000000002103000000000000002904000000000000003001380140054906000000000000"+
		"0050015801600168017007780880"+"01018901"+"0900000000000000",
		fmt.Sprintf("%x", env.Payload))
}

func TestNamesSurviveTheWire(t *testing.T) {
	env, err := encodeNames(hdr, []string{"a:1", "b:1"})
	require.NoError(t, err)
	e, err := decode(env, "shop")
	require.NoError(t, err)
	require.Equal(t, named{"m1", 7, 9, []string{"a:1", "b:1"}}, e)
	for _, addresses := range [][]string{
		make([]string, maxNames+1),
		{strings.Repeat("x", wire.MaxName+1)},
	} {
		env, err := encodeNames(hdr, addresses)
		require.NoError(t, err)
		_, err = decode(env, "shop")
		require.ErrorIs(t, err, errPayload)
	}
	env.Payload = make([]byte, wire.MaxPayload)
	_, err = decode(env, "shop")
	require.ErrorIs(t, err, errPayload)
}

// Nodes of other versions must be able to read this forever.
func TestHelloFixture(t *testing.T) {
	env, err := encode(hdr, greet)
	require.NoError(t, err)
	require.Equal(t, "0a03613a311001190200000000000000210300000000000000290400000000000000300138"+
		"01", fmt.Sprintf("%x", env.Payload))
}

func FuzzDecode(f *testing.F) {
	env, _ := encode(hdr, greet)
	f.Add(env.Payload)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, err := decode(wire.Seal(hdr, wire.MembershipHello, payload), "shop")
		if err != nil {
			return
		}
		r := e.(received)
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
		// Whatever the hello contains, the core accepts it.
		c := newCore(defaultSettings(), "shop", "b:1", "", 9, nil)
		for _, e := range []event{at("b", "m1"), r, r, wake{}} {
			c.Step(time.UnixMilli(1_000_000), e)
		}
	})
}

func FuzzDecodeNames(f *testing.F) {
	env, _ := encodeNames(hdr, []string{"a:1", "", "b:1"})
	f.Add(env.Payload)
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, err := decode(wire.Seal(hdr, wire.MembershipOthers, payload), "shop")
		if err != nil {
			return
		}
		n := e.(named)
		again, err := encodeNames(hdr, n.addresses)
		if err != nil {
			t.Fatal(err)
		}
		if n2, err := decode(again, "shop"); err != nil || !slices.Equal(n2.(named).addresses,
			n.addresses) {
			t.Fatalf("%+v is not %+v: %v", n2, n, err)
		}
		c := newCore(defaultSettings(), "shop", "b:1", "", 9, nil)
		for _, e := range []event{at("b"), received{member: "m1", from: 7, to: 9,
			hello: hello{sequence: 1, claim: claim{size: 1}}}, n, wake{}} {
			c.Step(time.UnixMilli(1_000_000), e)
		}
	})
}
