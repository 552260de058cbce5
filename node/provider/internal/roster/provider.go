package roster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
)

var (
	// ErrUsed is returned by StartMember of a provider that was started or shut down before.
	ErrUsed = errors.New("a provider serves one incarnation of a member: make a new one")
	// ErrClient is returned by StartClient.
	ErrClient = errors.New("clients are not supported: start a member")
	// ErrListed is matched by the error of StartMember when the directory did not list the member
	// in time.
	ErrListed = errors.New("not listed")
)

// Config configures a provider.
type Config struct {
	// Open opens the directory. StartMember returns its error.
	Open func(Self) (Directory, error)
	// StartTimeout bounds how long StartMember waits to be listed.
	StartTimeout time.Duration
	// Grace is how long members that are missing after a lost session stay listed.
	Grace time.Duration
	// Retry is the pause before a lost session is replaced.
	Retry time.Duration
}

// leaveTimeout bounds the requests of Shutdown to the directory.
const leaveTimeout = 2 * time.Second

// Provider implements cluster.ClusterProvider for one incarnation of a member. Use New.
type Provider struct {
	cfg Config

	mu struct {
		sync.Mutex
		used bool
		over bool
		stop func()    // stops what StartMember started; nil before
		dir  Directory // nil before StartMember has opened it
	}
	reports struct {
		sync.Mutex
		list  list
		timer *time.Timer
	}
}

var _ cluster.ClusterProvider = (*Provider)(nil)

// New returns a provider. It does nothing until StartMember is called.
func New(cfg Config) *Provider {
	p := &Provider{cfg: cfg}
	p.reports.list.grace = cfg.Grace
	return p
}

// StartClient implements cluster.ClusterProvider. It always fails.
func (p *Provider) StartClient(*cluster.Cluster) error { return ErrClient }

// StartMember implements cluster.ClusterProvider. It returns when the member is listed, or with an
// error after StartTimeout, when nothing is left running.
func (p *Provider) StartMember(c *cluster.Cluster) error {
	self, err := selfOf(c)
	if err != nil {
		return err
	}
	return p.start(self, func(members []*cluster.Member) {
		c.MemberList.UpdateClusterTopology(members)
	})
}

func (p *Provider) start(self Self, publish func([]*cluster.Member)) error {
	p.mu.Lock()
	if p.mu.used || p.mu.over {
		p.mu.Unlock()
		return ErrUsed
	}
	p.mu.used = true
	p.mu.Unlock()
	dir, err := p.cfg.Open(self)
	if err != nil {
		return err
	}
	s := &service{Provider: p, dir: dir, self: self, publish: publish, listed: make(chan struct{}),
		done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	p.mu.Lock()
	p.mu.dir = dir
	p.mu.stop = sync.OnceFunc(func() { cancel(); <-s.done; s.end() })
	stop, over := p.mu.stop, p.mu.over
	p.mu.Unlock()
	go s.run(ctx)
	if over {
		stop()
		return ErrUsed
	}
	patience := time.NewTimer(p.cfg.StartTimeout)
	defer patience.Stop()
	select {
	case <-s.listed:
		return nil
	case <-s.done:
		return ErrUsed // Shutdown was called in the meantime
	case <-patience.C:
	}
	stop()
	err = fmt.Errorf("%s: %w after %v", dir.Where(), ErrListed, p.cfg.StartTimeout)
	if s.last != nil {
		err = fmt.Errorf("%w: %w", err, s.last)
	}
	return err
}

// Accountant is a Directory that knows why members that it expects are not listed.
type Accountant interface {
	// Account names these members, with their last answers. It may be called at any time.
	Account() string
}

// Account returns what is known about members that are expected and not listed; "" if nothing is.
func (p *Provider) Account() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a, ok := p.mu.dir.(Accountant); ok {
		return a.Account()
	}
	return ""
}

// Shutdown implements cluster.ClusterProvider. It removes the member from the directory, and waits
// until nothing of the provider is running. It may be called before StartMember, and repeatedly.
func (p *Provider) Shutdown(bool) error {
	p.mu.Lock()
	p.mu.over = true
	stop := p.mu.stop
	p.mu.Unlock()
	if stop != nil {
		stop()
	}
	return nil
}

// service runs from StartMember to Shutdown.
type service struct {
	*Provider
	dir     Directory
	self    Self
	publish func([]*cluster.Member)
	listed  chan struct{} // closed at the first report
	done    chan struct{} // closed when run has returned
	last    error         // error of the last session; read after done is closed
}

// run keeps a session with the directory open.
func (s *service) run(ctx context.Context) {
	defer close(s.done)
	for warned := false; ; {
		err := s.dir.Serve(ctx, s.self, func(entries []Member) {
			if warned {
				s.self.Log.Info("cluster directory is back",
					slog.String("directory", s.dir.Where()))
			}
			warned = false
			s.hear(ctx, entries)
		})
		if ctx.Err() != nil {
			return
		}
		s.last = err
		s.reports.Lock()
		s.reports.list.lose()
		s.reports.Unlock()
		if !warned {
			s.self.Log.Warn("cluster directory does not answer: the last list of members stays in effect",
				slog.String("directory", s.dir.Where()), slog.Any("error", err))
		}
		warned = true
		pause := time.NewTimer(s.cfg.Retry)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return
		}
	}
}

// hear publishes a report of the directory. While missing members stay listed, it schedules another
// report.
func (s *service) hear(ctx context.Context, entries []Member) {
	s.reports.Lock()
	defer s.reports.Unlock()
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	s.tell(s.reports.list.hear(now, entries))
	if wait := s.reports.list.settles(now); wait > 0 {
		if s.reports.timer != nil {
			s.reports.timer.Stop()
		}
		s.reports.timer = time.AfterFunc(wait, func() {
			s.reports.Lock()
			defer s.reports.Unlock()
			if ctx.Err() == nil {
				s.tell(s.reports.list.at(time.Now()))
			}
		})
	}
	select {
	case <-s.listed:
	default:
		close(s.listed)
	}
}

// tell calls Proto.Actor, which publishes nothing if the list is unchanged.
func (s *service) tell(members []Member) {
	out := make([]*cluster.Member, 0, len(members))
	for _, m := range members {
		out = append(out, &cluster.Member{Id: m.ID, Host: bracketed(m.Host), Port: int32(m.Port),
			Kinds: m.Kinds})
	}
	s.publish(out)
}

// end leaves the directory after the last report.
func (s *service) end() {
	s.reports.Lock()
	if s.reports.timer != nil {
		s.reports.timer.Stop()
	}
	s.reports.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := s.dir.Leave(ctx, s.self); err != nil {
		s.self.Log.Warn("the directory still lists this member, until its entry expires",
			slog.String("directory", s.dir.Where()), slog.Any("error", err))
	}
	if err := s.dir.Close(); err != nil {
		s.self.Log.Warn("cluster directory not closed", slog.String("directory", s.dir.Where()),
			slog.Any("error", err))
	}
}
