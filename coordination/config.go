package coordination

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/metric"

	"github.com/concord-go/concord/coordination/internal/core"
	"github.com/concord-go/concord/internal/logging"
	"github.com/concord-go/concord/internal/settings"
)

// Config is the configuration of a session. Zero fields take their defaults. Sessions on one store
// may have different configurations: every contender waits for the TTL in the holder's record.
type Config struct {
	// Owner is shown to people, in Holder and in the store. It is not an identity: two sessions
	// with the same Owner exclude each other. At most 2048 bytes of UTF-8. Default: host:pid.
	Owner string `yaml:"owner"`
	// TTL is how long a lease outlives its holder. A higher value survives longer pauses and
	// outages of the store; a lower value shortens the wait after a crash. With the default, a
	// contender that watches a lease holds it from 6 to 9 seconds after its holder has crashed, and
	// a holder loses nothing if its process stands still for 2 seconds, or if each call of the
	// store takes 2 seconds. Default 8s, from 10ms to 24h.
	TTL time.Duration `yaml:"heartbeat-timeout"`
	// RenewInterval is the time between renewals, ±10 %. Default TTL/4, or less, but at least
	// TTL/10, if Drain, Margin and the like leave no time for two such renewals.
	RenewInterval time.Duration `yaml:"heartbeat-interval"`
	// OperationTimeout bounds one call of the store. A read or a claim for callers that wait has
	// twice the time, and a write of the session's record the TTL; a caller that makes one attempt
	// is answered after OperationTimeout. A store whose calls take longer grants and renews
	// nothing, so it should be well above the time of a slow call; a lower value repeats a lost
	// call sooner. Default 0.3·TTL, or 15s if that is less: calls that take a quarter of TTL
	// cost no lease. If RenewInterval, Drain and the like leave less time, it gives way, down to
	// TTL/10.
	OperationTimeout time.Duration `yaml:"lease-operation-timeout"`
	// RetryInterval is the time between reads of a lease that another session holds, ±10 %. If the
	// store is a leasestore.Watcher, a release is noticed at once all the same, and while its
	// watches run, one of the leases that a session waits for is read in that time, and one record
	// of each session that holds some. Default 5s, or RenewInterval if that is less.
	RetryInterval time.Duration `yaml:"retry-interval"`
	// Drain is the time that guarded work needs to stop after its context has ended. It is part of
	// the TTL. Default TTL/6.
	Drain time.Duration `yaml:"drain"`
	// ClockRateError bounds how much faster or slower than true time the clocks of holders and
	// contenders run. Exclusion depends on this bound; differences between clocks do not matter.
	// Default 0.01.
	ClockRateError float64 `yaml:"clock-rate-error"`
	// Margin allows for delays of scheduling and delivery: holders stop earlier by it, and
	// contenders wait longer. Default TTL/50, but at least 250ms or, if that is less, TTL/20.
	Margin time.Duration `yaml:"margin"`
	// Forever makes leases that never expire: only a release ends a tenure, or Lease.ForceRelease
	// by an operator who knows that the holder is dead. Until then a crash leaves the lease held.
	// The store must be a leasestore.SessionKeeper. Default false.
	Forever bool `yaml:"forever"`
	// Fair serves the waiters of Acquire in order of arrival. Without it, the first to claim the
	// lease after a release gets it. The store must keep leasestore.Documents. Fair costs two calls
	// for each read of the lease and two after the lease is granted. Where the store watches and
	// keeps sessions, a waiter does not read while the lease is held, and its place lives as long
	// as its session. Else a session that does not reach the store, or is paused, loses its place
	// after three reads: three times the lesser of RetryInterval and RenewInterval, plus two
	// OperationTimeouts, or TTL if that is less. A place that is not used for that time although
	// the lease is free is passed over in any case.
	// TryAcquire does not wait, so it has no place and takes a free lease at once; so does a
	// session that is not Fair. All goroutines of a session share one place. Default false.
	Fair bool `yaml:"fair"`
	// LockDelay is the time that contenders wait in addition to TTL after a crash or an outage, but
	// not after a release. It lets messages of the old holder arrive where fencing is not possible.
	// Default 0. TTL and LockDelay together are at most 24h.
	LockDelay time.Duration `yaml:"lock-delay"`
	// Inherit lets a session take over a lease that another session of the same Owner holds, at
	// once and without waiting for TTL and LockDelay: a restarted process continues where the
	// killed one stopped. The new tenure has the next token. Inherit gives up exclusion among
	// sessions of one Owner: if two of them run at the same time, both may believe for up to TTL
	// that they hold the lease, until the first learns of the takeover, and only fencing
	// distinguishes their effects. The later one takes a lease once; the first one does not take it
	// back, and inherits nothing more. A session with Forever that cannot reach the store does not
	// learn of it. To notice a takeover, a session with Inherit reads each lease that needs no
	// renewal of its own every RenewInterval. So set Inherit only where something else keeps
	// processes of one Owner apart, such as the port that they listen on or a StatefulSet, and set
	// Owner to that identity, such as host:port. Owner is required then. Default false.
	Inherit bool `yaml:"inherit"`
	// Meters receives the metrics, named concord.lease.*; Status describes what they count. Default
	// otel.GetMeterProvider().
	Meters metric.MeterProvider `yaml:"-"`
	// Clock is for tests that give each session its own clock, as package testkit does. Default:
	// the clocks of this process.
	Clock Clock `yaml:"-"`
	// Logger receives losses, long pauses of the process, and that the store does not answer or is
	// slow (Warn), the end of such a fault (Info), tenures that begin or are released (Debug) and
	// panics of handlers (Error). If a session loses all its leases at once, one line at Warn has
	// their number, eight at Info have names, and those of the others are at Debug. Default
	// slog.Default.
	Logger *slog.Logger `yaml:"-"`
}

// Shorter times are slips, such as a number without a unit, and keep a processor busy.
const (
	minTTL      = 10 * time.Millisecond
	minInterval = time.Millisecond
)

// maxOwner keeps a record within the size bound of every store.
const maxOwner = 2048

// withDefaults fills the zero fields.
func (c Config) withDefaults() Config {
	if c.Owner == "" {
		c.Owner = defaultOwner()
	}
	c.Logger = logging.Bounded(c.Logger)
	defaultTo(&c.TTL, 8*time.Second)
	defaultTo(&c.Drain, c.TTL/6)
	defaultTo(&c.Margin, max(c.TTL/50, min(250*time.Millisecond, c.TTL/20)))
	if c.ClockRateError == 0 {
		c.ClockRateError = 0.01
	}
	room := c.usable() * 2 / 5
	if c.RenewInterval != 0 {
		room = c.usable() - 2*c.RenewInterval
	}
	defaultTo(&c.OperationTimeout, min(15*time.Second, c.TTL*3/10, max(room, c.TTL/10)))
	room = (c.usable() - c.OperationTimeout) / 2
	defaultTo(&c.RenewInterval, min(c.TTL/4, max(room, c.TTL/10)))
	defaultTo(&c.RetryInterval, min(5*time.Second, c.RenewInterval))
	return c
}

// usable returns the time from a renewal to stop-by.
func (c Config) usable() time.Duration {
	return c.TTL - time.Duration(float64(c.TTL)*c.ClockRateError) - c.Margin - c.Drain
}

func defaultTo(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

func init() { settings.Checked(Config.validate) }

// validate reports every problem at once, after filling in the defaults. The tightest rule ensures
// that the work still stops in time if two renewals fail:
//
//	TTL·(1−ClockRateError) − Margin − Drain >= 2·RenewInterval + OperationTimeout
func (c Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if c.TTL != 0 && c.TTL < minTTL {
		bad("TTL (%v) must be at least %v", c.TTL, minTTL)
		c.TTL = 0 // the defaults that follow a bad TTL are not worth an error
	}
	unnamed := c.Owner == ""
	c = c.withDefaults()
	if c.Inherit && unnamed {
		bad("Inherit needs Owner to be set, and to be the same in every process that inherits")
	}
	if len(c.Owner) > maxOwner || !utf8.ValidString(c.Owner) {
		bad("Owner (%.80q) has %d bytes, it must be UTF-8 of at most %d", c.Owner, len(c.Owner),
			maxOwner)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"RenewInterval", c.RenewInterval}, {"OperationTimeout", c.OperationTimeout},
		{"RetryInterval", c.RetryInterval},
	} {
		if d.value < minInterval {
			bad("%s (%v) must be at least %v", d.name, d.value, minInterval)
		}
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"Drain", c.Drain}, {"Margin", c.Margin}} {
		if d.value <= 0 {
			bad("%s (%v) must be above 0", d.name, d.value)
		}
	}
	if c.LockDelay < 0 {
		bad("LockDelay (%v) must be at least 0", c.LockDelay)
	}
	if c.TTL > core.MaxTTL || c.LockDelay > core.MaxTTL-c.TTL {
		bad("TTL (%v) and LockDelay (%v) together must be at most %v", c.TTL, c.LockDelay,
			core.MaxTTL)
	}
	if !(c.ClockRateError >= 0 && c.ClockRateError < 0.5) { // also false for NaN
		bad("ClockRateError (%v) must be at least 0 and below 0.5", c.ClockRateError)
		c.ClockRateError = 0.01
	}
	if c.RenewInterval >= c.TTL/2 {
		bad("RenewInterval (%v) must be below half of TTL (%v)", c.RenewInterval, c.TTL)
	}
	usable := c.usable()
	if need := 2*c.RenewInterval + c.OperationTimeout; usable < need {
		bad("TTL less ClockRateError, Margin (%v) and Drain (%v) leaves %v of %v, which must be at least "+
			"2·RenewInterval (%v) + OperationTimeout (%v) = %v",
			c.Margin, c.Drain, usable, c.TTL, c.RenewInterval, c.OperationTimeout, need)
	}
	return errors.Join(errs...)
}

func (c Config) core(nonce string) core.Config {
	return core.Config{
		Owner: c.Owner, Nonce: nonce, TTL: c.TTL, Renew: c.RenewInterval,
		Operation: c.OperationTimeout,
		Retry:     c.RetryInterval, Drain: c.Drain, Margin: c.Margin, RateError: c.ClockRateError,
		LockDelay: c.LockDelay, Forever: c.Forever, Fair: c.Fair, Inherit: c.Inherit,
		Jitter: rand.Float64,
	}
}
