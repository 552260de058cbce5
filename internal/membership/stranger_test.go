package membership

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// together returns member a, which lists b.
func together(t *testing.T) *fixture {
	f := newFixture(t).step(at("a", "b"))
	f.step(from("b", 'b', 1, 1098))
	require.NotZero(t, f.c.stamp)
	return f.pass(5 * time.Second)
}

// A stranger that listens at its own address has the identity it claims, and learns our incarnation
// from the answer to its first hello. It claims that we were its member, that its fragment is
// large, and grants every request. Before the fix, each member that heard it repeatedly ended its
// incarnation after the patience.
func TestStranger_NobodyGivesWayToIt(t *testing.T) {
	for name, lie := range map[string]func(*received){
		"dropped us": func(r *received) { r.hello.droppedYou = true },
		"lists us":   func(r *received) { r.hello.listsYou = true },
		"lists us, dropped us": func(r *received) {
			r.hello.listsYou, r.hello.droppedYou = true, true
		},
		"holds the arbiter": func(r *received) {
			r.hello.droppedYou, r.hello.arbiter = true, true
		},
		"listed and dropped it?": func(r *received) {
			r.hello.droppedYou, r.hello.disowned = true, true
		},
	} {
		f := together(t)
		for i := range uint64(400) {
			r := denying("z", 1+i, claim{size: 1 << 30, oldest: 1})
			lie(&r)
			f.pass(250 * time.Millisecond).step(r)
			require.Empty(t, f.yields(), name)
		}
		require.False(t, f.c.removed, name)
		require.Len(t, f.c.conflicts.reported, 1, "%s: operators are told", name)
	}
}

// fallen returns member a, which listed b and c until b died.
func fallen(t *testing.T, proof string) *fixture {
	f := newFixture(t).step(at("a", "b", "c"))
	b := from("b", 'b', 1, 1098)
	b.hello.size, b.hello.pledge = 3, pledgeOf(proof)
	f.step(from("c", 'c', 1, 1099)).step(b).step(at("a", "c"))
	require.NotZero(t, f.c.stamp)
	return f.pass(5 * time.Second)
}

// A stranger that listens at the address of a dead member knows everything that the member has
// said, except the proof that its process has said to nobody yet. Before the fix, the address was
// enough.
func TestStranger_TheAddressOfALostMemberProvesNothing(t *testing.T) {
	const proof = "0123456789abcdef"
	yields := func(id, given string) (n int) {
		f := fallen(t, proof)
		for i := range uint64(100) {
			r := denying(id, 10+i, claim{size: 1 << 30, oldest: 1, arbiter: true})
			r.hello.address, r.hello.droppedYou, r.hello.proof = "b:1", true, given
			f.pass(250 * time.Millisecond).step(r)
			n += len(f.yields())
		}
		return n
	}
	for _, id := range []string{"b", "z"} {
		require.Zero(t, yields(id, ""), id)
		require.Zero(t, yields(id, "0123456789abcdeF"), id)
		require.Positive(t, yields(id, proof), "%s: the process itself, now or rejoined", id)
	}
}

// While the dead member is still listed, a stranger at its address that uses its id is not heard
// either, if it disowns us.
func TestStranger_DisownsNobodyInTheNameOfAListedMember(t *testing.T) {
	f := newFixture(t).step(at("a", "b"))
	b := from("b", 'b', 1, 1098)
	b.hello.size, b.hello.pledge = 2, pledgeOf("0123456789abcdef")
	f.step(b).pass(5 * time.Second)
	for i := range uint64(100) {
		r := denying("b", 10+i, claim{})
		f.pass(250 * time.Millisecond).step(r)
		require.False(t, f.c.removed)
		require.Empty(t, f.yields())
	}
}

// A member that is never listed here may have to step down, and needs a permit. While the permit is
// outstanding, this member does not step down itself.
func TestStranger_GetsAPermitNowAndThen(t *testing.T) {
	f := together(t)
	out := 0
	for i := range uint64(2400) { // ten minutes
		r := denying("yz"[i%2:][:1], 1+i, small)
		r.hello.yield, r.hello.droppedYou = true, true
		f.pass(250 * time.Millisecond).step(r)
		out += len(f.c.permits.given)
	}
	require.Positive(t, out)
	require.LessOrEqual(t, out, 2400*3/10, "a quarter of the time")
}

// A stranger could otherwise vouch for itself by naming its own address.
func TestStranger_NamesNobody(t *testing.T) {
	f := together(t)
	r := denying("z", 1, large)
	r.hello.droppedYou = true
	f.step(r)
	f.step(named{member: "z", from: 'z', to: 100, addresses: []string{"z:1", "y:1"}})
	require.Equal(t, []reason{whyStranger}, f.dropped())
	require.Empty(t, f.c.lost.all)
}

// An address named by a former member is as good as the member's own.
func TestStranger_IsOneNoMoreWhenAFormerMemberNamesIt(t *testing.T) {
	f := alone(t).step(at("a", "c")).pass(5 * time.Second)
	f.step(denying("b", 10, large))
	f.step(named{member: "b", from: 'b', to: 100, addresses: []string{"z:1"}})
	for i := range uint64(20) {
		r := denying("z", 1+i, claim{size: 20, oldest: 1})
		r.hello.droppedYou = true
		f.pass(250 * time.Millisecond).step(r)
		if y := f.yields(); len(y) > 0 && y[0].address == "z:1" {
			return
		}
	}
	t.Fatal("no request")
}

// Strangers send hellos under an unlimited number of ids.
func TestStranger_LeavesRoomForMembersInConflict(t *testing.T) {
	f := alone(t)
	for i := range uint64(2000) {
		r := denying("z", 1, large)
		r.member, r.from = fmt.Sprint("z", i), 1+i
		f.step(r)
	}
	require.Len(t, f.c.conflicts.by, f.c.maxOthers/4)
	f.c.maxOthers = f.c.maxOthers / 4
	f.step(denying("b", 10, large))
	require.NotNil(t, f.c.conflicts.by["b"])
	require.Len(t, f.c.conflicts.by, f.c.maxOthers)
}
