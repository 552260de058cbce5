package leaseconfig_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/coordination/memory"
)

// shelf counts the stores that are opened and closed.
type shelf struct{ opened, closed int }

type closingStore struct {
	memory.Store
	shelf *shelf
}

func (s closingStore) Close() error { s.shelf.closed++; return nil }

type shelfSettings struct {
	Size int `yaml:"size"`
}

func (s *shelf) openers() map[string]leaseconfig.Opener {
	return map[string]leaseconfig.Opener{
		"memory": func(decode func(any) error) (func() (leasestore.Store, error), error) {
			var settings shelfSettings
			if err := decode(&settings); err != nil {
				return nil, err
			}
			return func() (leasestore.Store, error) {
				s.opened++
				return closingStore{memory.New(), s}, nil
			}, nil
		},
		"none": opens(func() (leasestore.Store, error) { return nil, nil }),
	}
}

// opens returns an opener without settings.
func opens(open func() (leasestore.Store, error)) leaseconfig.Opener {
	return func(func(any) error) (func() (leasestore.Store, error), error) { return open, nil }
}

// at returns sections with these classes, at the locations a, b, c.
func at(classes ...string) map[string]leaseconfig.Section {
	sections := map[string]leaseconfig.Section{}
	for i, class := range classes {
		sections[string(rune('a'+i))] = leaseconfig.Section{LeaseClass: class}
	}
	return sections
}

func provide(t *testing.T, sections map[string]leaseconfig.Section) (*leaseconfig.Provider,
	*shelf) {
	t.Helper()
	s := &shelf{}
	p, err := leaseconfig.NewProvider(sections, s.openers())
	require.NoError(t, err)
	t.Cleanup(func() { _ = p.Close(context.Background()) }) // leases may still be held
	return p, s
}

func TestProvider_OneLeaseForEachTriple(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shelf := provide(t, at("memory", "memory"))
		first, drop, err := p.Lease("a", "x", "me")
		require.NoError(t, err)
		again, dropAgain, err := p.Lease("a", "x", "me")
		require.NoError(t, err)
		require.Same(t, first, again)
		for _, other := range [][3]string{{"a", "y", "me"}, {"a", "x", "you"}, {"b", "x", "me"}} {
			l, _, err := p.Lease(other[0], other[1], other[2])
			require.NoError(t, err)
			require.NotSame(t, first, l, "%v", other)
		}
		require.Equal(t, 2, shelf.opened, "one store for each location")

		other, _, err := p.Lease("a", "x", "you")
		require.NoError(t, err)
		_, err = first.TryAcquire(t.Context())
		require.NoError(t, err)
		_, err = other.TryAcquire(t.Context())
		require.ErrorIs(t, err, coordination.ErrHeld, "one lease for all owners")

		require.NoError(t, drop(t.Context()))
		require.NoError(t, drop(t.Context()), "twice is once")
		_, err = again.TryAcquire(t.Context())
		require.NoError(t, err, "still in use")
		require.NoError(t, dropAgain(t.Context()))
		_, err = again.TryAcquire(t.Context())
		require.NoError(t, err, "another name of this session is in use")
	})
}

func TestProvider_TheLastDropEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := provide(t, at("memory"))
		l, drop, err := p.Lease("a", "x", "me")
		require.NoError(t, err)
		g, err := l.TryAcquire(t.Context())
		require.NoError(t, err)
		// its work has ended
		go func() { <-g.Context().Done(); _ = g.Release(context.Background()) }()
		require.NoError(t, drop(t.Context()))
		require.Error(t, g.Check())
		_, err = l.TryAcquire(t.Context())
		require.ErrorIs(t, err, coordination.ErrClosed)

		l, _, err = p.Lease("a", "x", "me", func(c *coordination.Config) { c.TTL = time.Hour })
		require.NoError(t, err, "other options are no contradiction any more")
		_, err = l.TryAcquire(t.Context())
		require.NoError(t, err)
		_, _, err = p.Lease("a", "x", "me")
		require.ErrorIs(t, err, coordination.ErrInvalid)
		require.ErrorContains(t, err, "other options")
	})
}

func TestProvider_UnknownLocationListsTheKnown(t *testing.T) {
	p, _ := provide(t, at("memory", "memory"))
	_, _, err := p.Lease("c", "x", "me")
	require.ErrorIs(t, err, coordination.ErrInvalid)
	require.ErrorContains(t, err, `no lease section "c", only ["a" "b"]`)
	_, _, err = p.Lease("a", "x", "me", nil)
	require.ErrorContains(t, err, "an option of lease \"x\" is nil")
}

func TestProvider_AllProblemsAtOnce(t *testing.T) {
	openers := (&shelf{}).openers()
	openers["nothing"] = opens(nil)
	_, err := leaseconfig.NewProvider(map[string]leaseconfig.Section{
		"a": {LeaseClass: "akka.Lease"}, "b": {},
		"d": {LeaseClass: "memory", Store: func(any) error {
			return errors.New("size is odd")
		}},
		"e": {LeaseClass: "nothing"},
		"c": {LeaseClass: "memory", Config: coordination.Config{TTL: time.Minute,
			RenewInterval: 31 * time.Second}},
	}, openers)
	require.ErrorIs(t, err, coordination.ErrInvalid)
	for _, problem := range []string{
		`section "a": coordination: invalid argument: lease-class "akka.Lease" is none of ["memory" "none" "nothing"]`, `section "b"`,
		`section "d": coordination: invalid argument: store of lease-class "memory": size is odd`,
		`section "e": coordination: invalid argument: the opener of lease-class "nothing" returned no function`,
		`section "c": coordination: invalid argument: RenewInterval (31s) must be below half of TTL (1m0s)`} {
		require.ErrorContains(t, err, problem)
	}
}

// A failed opening is tried again.
func TestProvider_OpenersErrorIsNotRemembered(t *testing.T) {
	broken := errors.New("no disk")
	p, err := leaseconfig.NewProvider(map[string]leaseconfig.Section{"a": {LeaseClass: "x"}},
		map[string]leaseconfig.Opener{
			"x": opens(func() (leasestore.Store, error) {
				if err := broken; err != nil {
					broken = nil
					return nil, err
				}
				return memory.New(), nil
			}),
		})
	require.NoError(t, err)
	_, _, err = p.Lease("a", "x", "me")
	require.ErrorContains(t, err, "no disk")
	_, _, err = p.Lease("a", "x", "me")
	require.NoError(t, err)
	require.NoError(t, p.Close(t.Context()))
	_, _, err = p.Lease("a", "x", "me")
	require.ErrorIs(t, err, coordination.ErrClosed)
}

func TestProvider_SettingsOfTheStoreReachItsOpener(t *testing.T) {
	var size int
	decode := func(into any) error { into.(*shelfSettings).Size = 3; size++; return nil }
	p, shelf := provide(t, map[string]leaseconfig.Section{
		"a": {LeaseClass: "memory", Store: decode}, "c": {LeaseClass: "none"}})
	require.Equal(t, 1, size, "settings are read at once")
	require.Zero(t, shelf.opened, "stores are not")
	_, _, err := p.Lease("a", "x", "me")
	require.NoError(t, err)
	_, _, err = p.Lease("c", "x", "me")
	require.ErrorContains(t, err, `lease-class "none" opened no store`)
	require.Equal(t, 1, shelf.opened)
}

// Without an owner in the call, the owner of the section is used.
func TestProvider_OwnerOfTheSection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := provide(t, map[string]leaseconfig.Section{
			"a": {LeaseClass: "memory", Config: coordination.Config{Owner: "10.0.0.1:7000"}},
		})
		for owner, want := range map[string]string{"": "10.0.0.1:7000", "me": "me"} {
			l, _, err := p.Lease("a", "x"+owner, owner)
			require.NoError(t, err)
			_, err = l.TryAcquire(t.Context())
			require.NoError(t, err)
			other, _, err := p.Lease("a", "x"+owner, "other")
			require.NoError(t, err)
			_, err = other.TryAcquire(t.Context())
			var held *coordination.HeldError
			require.ErrorAs(t, err, &held)
			require.Equal(t, want, held.Holder.Owner)
		}
	})
}

func TestProvider_CloseClosesStores(t *testing.T) {
	s := &shelf{}
	p, err := leaseconfig.NewProvider(at("memory"), s.openers())
	require.NoError(t, err)
	l, drop, err := p.Lease("a", "x", "me")
	require.NoError(t, err)
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, drop(t.Context()))
	require.Equal(t, shelf{1, 1}, *s)
	_, err = l.TryAcquire(t.Context())
	require.ErrorIs(t, err, coordination.ErrClosed)
}

// An opener that waits for a server delays only its own location, and does not delay Close.
func TestProvider_ASlowOpenerHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, answer := &shelf{}, make(chan struct{})
		openers := s.openers()
		openers["slow"] = opens(func() (leasestore.Store, error) {
			<-answer
			s.opened++
			return closingStore{memory.New(), s}, nil
		})
		p, err := leaseconfig.NewProvider(at("slow", "memory"), openers)
		require.NoError(t, err)
		late := make(chan error)
		for range 2 {
			go func() {
				_, _, err := p.Lease("a", "x", "me")
				late <- err
			}()
		}
		synctest.Wait()
		_, drop, err := p.Lease("b", "x", "me")
		require.NoError(t, err)
		require.NoError(t, drop(t.Context()))
		require.NoError(t, p.Close(t.Context()))
		close(answer)
		require.ErrorIs(t, <-late, coordination.ErrClosed)
		require.ErrorIs(t, <-late, coordination.ErrClosed)
		require.Equal(t, shelf{2, 2}, *s, "what was opened too late is closed")
	})
}

// Two concurrent callers for one location get one store.
func TestProvider_OneStoreForAllWhoWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, answer := &shelf{}, make(chan struct{})
		p, err := leaseconfig.NewProvider(map[string]leaseconfig.Section{"a": {LeaseClass: "slow"}},
			map[string]leaseconfig.Opener{
				"slow": opens(func() (leasestore.Store, error) {
					<-answer
					s.opened++
					return closingStore{memory.New(), s}, nil
				}),
			})
		require.NoError(t, err)
		leases := make(chan *coordination.Lease)
		for range 3 {
			go func() {
				l, _, err := p.Lease("a", "x", "me")
				if err != nil {
					t.Error(err)
				}
				leases <- l
			}()
		}
		synctest.Wait()
		close(answer)
		first := <-leases
		require.Same(t, first, <-leases)
		require.Same(t, first, <-leases)
		require.NoError(t, p.Close(t.Context()))
		require.Equal(t, shelf{1, 1}, *s)
	})
}

// Documents of a location are in the store of its leases, which is opened once and closed with the
// provider.
func TestProvider_Documents(t *testing.T) {
	p, shelf := provide(t, at("memory", "memory", "none"))
	d, err := p.Document("a", "members")
	require.NoError(t, err)
	_, swapped, err := d.Swap(t.Context(), "", []byte("one"))
	require.NoError(t, err)
	require.True(t, swapped)
	again, err := p.Document("a", "members")
	require.NoError(t, err)
	text, _, err := again.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, "one", string(text))
	require.Equal(t, 1, shelf.opened)

	_, err = p.Document("d", "members")
	require.ErrorIs(t, err, coordination.ErrInvalid)
	require.ErrorContains(t, err, `no lease section "d", only ["a" "b" "c"]`)
	_, err = p.Document("b", "")
	require.ErrorIs(t, err, coordination.ErrInvalid)
	_, err = p.Document("c", "members")
	require.ErrorContains(t, err, "opened no store")
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, shelf.opened, shelf.closed)
	_, err = p.Document("a", "members")
	require.ErrorIs(t, err, coordination.ErrClosed)
}

// The owner of a section with Inherit may come with each call of Lease, as in other actor systems:
// a restarted process has the lease at once, and another owner waits.
func TestProvider_AnOwnerInheritsFromItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		holds := func(owner string) (token coordination.Token, err error) {
			p, err := leaseconfig.NewProvider(map[string]leaseconfig.Section{"a": {
				LeaseClass: "shared", Config: coordination.Config{Inherit: true},
			}}, map[string]leaseconfig.Opener{"shared": opens(func() (leasestore.Store, error) {
				return store, nil
			})})
			require.NoError(t, err)
			t.Cleanup(func() { _ = p.Close(context.Background()) })
			l, _, err := p.Lease("a", "x", owner)
			if err != nil {
				return 0, err
			}
			g, err := l.TryAcquire(t.Context())
			if err != nil {
				return 0, err
			}
			return g.Token(), nil
		}
		first, err := holds("host:4050")
		require.NoError(t, err)
		second, err := holds("host:4050")
		require.NoError(t, err, "the same owner")
		require.Equal(t, first+1, second)
		_, err = holds("host:4051")
		require.ErrorIs(t, err, coordination.ErrHeld)
		_, err = holds("")
		require.ErrorContains(t, err, "Inherit needs Owner")
	})
}
