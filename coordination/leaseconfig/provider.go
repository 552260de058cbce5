package leaseconfig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

// Opener checks the settings of a section, which decode puts into a struct with yaml tags, and
// returns a function that opens the store. An Opener must not block: NewProvider calls it for every
// section, so that all mistakes of a configuration are reported before anything runs. While open
// runs, other callers that want a lease of the same location wait for its result. The provider
// closes a store that is an io.Closer. Each store package has an Opener.
type Opener func(decode func(into any) error) (open func() (leasestore.Store, error), err error)

// Provider hands out leases by configuration location, name and owner. It opens stores and sessions
// when a caller asks for their first lease: one store for each location, one session for each
// location, owner and configuration. Methods may be called from many goroutines.
type Provider struct {
	sections map[string]Section
	openers  map[string]func() (leasestore.Store, error) // by location
	opening  singleflight.Group                          // of stores, by location
	drops    sync.WaitGroup                              // sessions that are being closed

	mu struct {
		sync.Mutex
		closed   bool
		stores   map[string]leasestore.Store
		sessions map[sessionKey]*provided
		leases   map[leaseKey]coordination.Config
	}
}

type leaseKey struct{ location, name, owner string }

type sessionKey struct {
	location string
	config   coordination.Config // without the fields that cannot be compared
}

// provided is a session and its reference counts, by lease.
type provided struct {
	session *coordination.Session
	refs    map[leaseKey]int
}

// NewProvider checks all sections and reports all problems at once: a class without an opener,
// settings out of their range, store settings that the opener rejects. It opens nothing. The caller
// must not change the map of sections afterwards.
func NewProvider(sections map[string]Section, openers map[string]Opener) (*Provider, error) {
	var errs []error
	p := &Provider{sections: map[string]Section{}, openers: map[string]func() (leasestore.Store,
		error){}}
	for _, location := range slices.Sorted(maps.Keys(sections)) {
		s := sections[location]
		p.sections[location] = s
		open, err := s.opener(openers)
		if err != nil {
			errs = append(errs, fmt.Errorf("section %q: %w", location, err))
		}
		p.openers[location] = open
		if err := s.validate(); err != nil {
			errs = append(errs, fmt.Errorf("section %q: %w", location, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.mu.stores, p.mu.sessions, p.mu.leases = map[string]leasestore.Store{},
		map[sessionKey]*provided{}, map[leaseKey]coordination.Config{}
	return p, nil
}

// opener returns the function that opens the store of a section.
func (s Section) opener(openers map[string]Opener) (func() (leasestore.Store, error), error) {
	opener, decode := openers[s.LeaseClass], s.Store
	if opener == nil {
		return nil, fmt.Errorf("%w: lease-class %q is none of %q", coordination.ErrInvalid,
			s.LeaseClass, slices.Sorted(maps.Keys(openers)))
	}
	if decode == nil {
		decode = func(any) error { return nil }
	}
	open, err := opener(decode)
	if err != nil {
		return nil, fmt.Errorf("%w: store of lease-class %q: %w", coordination.ErrInvalid,
			s.LeaseClass, err)
	}
	if open == nil {
		return nil, fmt.Errorf("%w: the opener of lease-class %q returned no function",
			coordination.ErrInvalid, s.LeaseClass)
	}
	return open, nil
}

// Lease returns the lease of the name at a location. owner is the holder's name as shown to people;
// "" stands for the Owner of the section, or else the default of Config.Owner. options change the
// section's configuration. The same location, name and owner give the same lease, and must come
// with the same options: otherwise the error is ErrInvalid, as it is for an unknown location. The
// error of an opener is not remembered: the next call tries again.
//
// drop gives the lease back; only its first call has an effect. Dropping the last lease of a
// session closes the session: drop then waits as Session.Close does and returns its result.
// Dropping a lease does not release it while another caller has it.
func (p *Provider) Lease(location, name, owner string,
	options ...func(*coordination.Config)) (l *coordination.Lease, drop func(context.Context) error,
	err error) {
	section, ok := p.sections[location]
	if !ok {
		return nil, nil, p.unknown(location)
	}
	cfg := section.Config
	for _, option := range options {
		if option == nil {
			return nil, nil, fmt.Errorf("%w: an option of lease %.80q is nil",
				coordination.ErrInvalid, name)
		}
		option(&cfg)
	}
	if owner != "" {
		cfg.Owner = owner
	}
	store, err := p.store(location)
	if err != nil {
		return nil, nil, fmt.Errorf("lease section %q: %w", location, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, nil, fmt.Errorf("lease %q: %w", name, coordination.ErrClosed)
	}
	triple, key := leaseKey{location, name, owner}, sessionKey{location, plain(cfg)}
	if first, known := p.mu.leases[triple]; known && first != key.config {
		return nil, nil, fmt.Errorf("%w: lease %q at %q of %q is in use with other options",
			coordination.ErrInvalid, name, location, owner)
	}
	s, err := p.sessionLocked(key, store, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("lease section %q: %w", location, err)
	}
	p.mu.leases[triple] = key.config
	s.refs[triple]++
	return s.session.Lease(name), p.dropper(key, triple), nil
}

// Document returns a document in the store of a location, and opens the store if necessary. It
// needs no session. The errors are those of Lease and of NewDocument.
func (p *Provider) Document(location, name string) (*coordination.Document, error) {
	if _, ok := p.sections[location]; !ok {
		return nil, p.unknown(location)
	}
	store, err := p.store(location)
	if err != nil {
		return nil, fmt.Errorf("lease section %q: %w", location, err)
	}
	return coordination.NewDocument(store, name)
}

func (p *Provider) unknown(location string) error {
	return fmt.Errorf("%w: no lease section %q, only %q", coordination.ErrInvalid, location,
		slices.Sorted(maps.Keys(p.sections)))
}

// plain clears the fields that belong to the process and cannot always be compared.
func plain(c coordination.Config) coordination.Config {
	c.Clock, c.Logger, c.Meters = nil, nil, nil
	return c
}

func (p *Provider) sessionLocked(key sessionKey, store leasestore.Store,
	cfg coordination.Config) (*provided, error) {
	if s, ok := p.mu.sessions[key]; ok {
		return s, nil
	}
	session, err := coordination.Open(store, cfg)
	if err != nil {
		return nil, err
	}
	s := &provided{session, map[leaseKey]int{}}
	p.mu.sessions[key] = s
	return s, nil
}

// store opens the store of a location, once for all concurrent callers, and without blocking other
// locations.
func (p *Provider) store(location string) (leasestore.Store, error) {
	opened, err, _ := p.opening.Do(location, func() (any, error) {
		if known, err := p.known(location); known != nil || err != nil {
			return known, err
		}
		store, err := p.open(location)
		if err != nil {
			return nil, err
		}
		return store, p.keep(location, store)
	})
	if err != nil {
		return nil, err
	}
	return opened.(leasestore.Store), nil
}

func (p *Provider) known(location string) (leasestore.Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, coordination.ErrClosed
	}
	return p.mu.stores[location], nil
}

func (p *Provider) open(location string) (leasestore.Store, error) {
	store, err := p.openers[location]()
	if err == nil && store == nil {
		err = fmt.Errorf("%w: lease-class %q opened no store", coordination.ErrInvalid,
			p.sections[location].LeaseClass)
	}
	return store, err
}

// keep stores an opened store, unless the provider has been closed meanwhile.
func (p *Provider) keep(location string, store leasestore.Store) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.closed {
		p.mu.stores[location] = store
		return nil
	}
	if c, ok := store.(io.Closer); ok {
		return errors.Join(coordination.ErrClosed, c.Close())
	}
	return coordination.ErrClosed
}

// dropper returns a function that gives one reference back.
func (p *Provider) dropper(key sessionKey, triple leaseKey) func(context.Context) error {
	var once sync.Once
	return func(ctx context.Context) (err error) {
		once.Do(func() {
			if unused := p.unref(key, triple); unused != nil {
				defer p.drops.Done()
				err = unused.Close(ctx)
			}
		})
		return err
	}
}

// unref returns the session if no lease of it is in use any more.
func (p *Provider) unref(key sessionKey, triple leaseKey) *coordination.Session {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.mu.sessions[key]
	if !ok {
		return nil // the provider is closed
	}
	if s.refs[triple]--; s.refs[triple] > 0 {
		return nil
	}
	delete(s.refs, triple)
	delete(p.mu.leases, triple)
	if len(s.refs) > 0 {
		return nil
	}
	delete(p.mu.sessions, key)
	p.drops.Add(1)
	return s.session
}

// Close closes all sessions concurrently, as Session.Close does, waits for sessions that drop is
// closing, and then closes the stores. It joins their errors. It does not wait for an opener: the
// call of Lease or Document that opened a store after Close closes that store. Later calls of Lease
// fail with ErrClosed, and later calls of drop do nothing.
func (p *Provider) Close(ctx context.Context) error {
	p.mu.Lock()
	sessions, stores := p.mu.sessions, p.mu.stores
	p.mu.closed, p.mu.sessions, p.mu.stores = true, nil, nil
	p.mu.Unlock()
	var mu sync.Mutex
	var errs []error
	var work sync.WaitGroup
	for _, s := range sessions {
		work.Go(func() {
			err := s.session.Close(ctx)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	work.Wait()
	p.drops.Wait()
	for _, location := range slices.Sorted(maps.Keys(stores)) {
		if c, ok := stores[location].(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
