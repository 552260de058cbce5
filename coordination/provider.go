package coordination

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/singleflight"
)

// Opener opens a store with the settings of a section, which decode puts into a struct with yaml tags or a map.
// While it runs, others that want a lease of the same location wait for what it returns. A store that is an
// io.Closer is closed by the provider.
type Opener func(decode func(into any) error) (Store, error)

// Provider gives out leases by configuration location, name and owner. Stores are opened, and sessions begun,
// when the first lease of theirs is asked for: one store for each location, one session for each location, owner
// and configuration. Methods may be called by many goroutines.
type Provider struct {
	sections map[string]Section
	openers  map[string]Opener
	opening  singleflight.Group // of stores, by location
	drops    sync.WaitGroup     // sessions that are being closed

	mu struct {
		sync.Mutex
		closed   bool
		stores   map[string]Store
		sessions map[sessionKey]*provided
		leases   map[leaseKey]Config
	}
}

type leaseKey struct{ location, name, owner string }

type sessionKey struct {
	location string
	config   Config // without what cannot be compared
}

// provided is a session and how many have a lease of it.
type provided struct {
	session *Session
	refs    map[leaseKey]int
}

// NewProvider checks all sections, and tells all problems at once: a class that has no opener, a configuration
// that Config.Validate refuses. The maps must not be changed afterwards.
func NewProvider(sections map[string]Section, openers map[string]Opener) (*Provider, error) {
	var errs []error
	complete := map[string]Section{}
	for _, location := range slices.Sorted(maps.Keys(sections)) {
		s := DefaultSection(sections[location])
		complete[location] = s
		if openers[s.LeaseClass] == nil {
			errs = append(errs, fmt.Errorf("%w: section %q: lease-class %q is none of %q", ErrInvalid, location,
				s.LeaseClass, slices.Sorted(maps.Keys(openers))))
		}
		if err := s.Config.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("section %q: %w", location, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p := &Provider{sections: complete, openers: openers}
	p.mu.stores, p.mu.sessions, p.mu.leases = map[string]Store{}, map[sessionKey]*provided{}, map[leaseKey]Config{}
	return p, nil
}

// Lease returns the lease of the name at a location, for an owner, who is shown to people; "" is the default of
// Config.Owner. options change the section's configuration. The same three values give the same lease, which
// must have the same options: else the error is ErrInvalid, as it is for a location that is not known. The
// error of an opener is not remembered: the next call tries again.
//
// drop gives the lease back, once, however often it is called. The last one of a session closes it: it waits as
// Session.Close does, and returns what that returns. To drop a lease does not release it while others have
// it.
func (p *Provider) Lease(location, name, owner string, options ...func(*Config)) (l *Lease, drop func(context.Context) error, err error) {
	section, ok := p.sections[location]
	if !ok {
		return nil, nil, fmt.Errorf("%w: no lease section %q, only %q", ErrInvalid, location, slices.Sorted(maps.Keys(p.sections)))
	}
	cfg := section.Config
	for _, option := range options {
		option(&cfg)
	}
	cfg.Owner = owner
	store, err := p.store(location)
	if err != nil {
		return nil, nil, fmt.Errorf("lease section %q: %w", location, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, nil, fmt.Errorf("lease %q: %w", name, ErrClosed)
	}
	triple, key := leaseKey{location, name, owner}, sessionKey{location, plain(cfg)}
	if first, known := p.mu.leases[triple]; known && first != key.config {
		return nil, nil, fmt.Errorf("%w: lease %q at %q of %q is in use with other options", ErrInvalid, name, location, owner)
	}
	s, err := p.sessionLocked(key, store, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("lease section %q: %w", location, err)
	}
	p.mu.leases[triple] = key.config
	s.refs[triple]++
	return s.session.Lease(name), p.dropper(key, triple), nil
}

// plain leaves out what belongs to the process, and cannot always be compared.
func plain(c Config) Config {
	c.Clock, c.Logger, c.Meters = nil, nil, nil
	return c
}

func (p *Provider) sessionLocked(key sessionKey, store Store, cfg Config) (*provided, error) {
	if s, ok := p.mu.sessions[key]; ok {
		return s, nil
	}
	session, err := Open(store, cfg)
	if err != nil {
		return nil, err
	}
	s := &provided{session, map[leaseKey]int{}}
	p.mu.sessions[key] = s
	return s, nil
}

// store opens the store of a location, once for all who ask meanwhile, and without holding up other locations.
func (p *Provider) store(location string) (Store, error) {
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
	return opened.(Store), nil
}

func (p *Provider) known(location string) (Store, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, ErrClosed
	}
	return p.mu.stores[location], nil
}

func (p *Provider) open(location string) (Store, error) {
	section := p.sections[location]
	store, err := p.openers[section.LeaseClass](func(into any) error {
		if err := transcode(section.Store, into); err != nil {
			return fmt.Errorf("%w: store of section %q: %w", ErrInvalid, location, err)
		}
		return nil
	})
	if err == nil && store == nil {
		err = fmt.Errorf("%w: lease-class %q opened no store", ErrInvalid, section.LeaseClass)
	}
	return store, err
}

// keep takes over a store, unless the provider has been closed meanwhile.
func (p *Provider) keep(location string, store Store) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.closed {
		p.mu.stores[location] = store
		return nil
	}
	if c, ok := store.(io.Closer); ok {
		return errors.Join(ErrClosed, c.Close())
	}
	return ErrClosed
}

// dropper gives one reference back.
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

// unref returns the session if nobody has a lease of it any more.
func (p *Provider) unref(key sessionKey, triple leaseKey) *Session {
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

// Close closes all sessions side by side, as Session.Close does, waits for those that drop is closing, and then
// closes the stores. Their errors are joined. It does not wait for an opener: a store that comes later is closed by
// who asked for it. Later calls of Lease fail with ErrClosed, and of drop do nothing.
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
