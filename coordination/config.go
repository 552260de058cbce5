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
)

// Config of a session. Zero fields take their defaults. Sessions on one store may differ: everybody
// waits for the TTL that the holder's record names.
type Config struct {
	// Owner is shown to people, in Holder and in the store. Identity does not rest on it: two
	// sessions with one Owner exclude each other. At most 2048 bytes of UTF-8. Default: host:pid.
	Owner string `yaml:"owner"`
	// TTL is how long a lease outlives its holder. Raising it survives longer pauses and outages of
	// the store; lowering it shortens the wait after a crash. Default 30s, at most 24h.
	TTL time.Duration `yaml:"heartbeat-timeout"`
	// RenewInterval is the time between renewals, ±10 %. Default TTL/3.
	RenewInterval time.Duration `yaml:"heartbeat-interval"`
	// OperationTimeout bounds one call of the store, and TryAcquire as a whole. Default 3s, or TTL/10
	// if that is less.
	OperationTimeout time.Duration `yaml:"lease-operation-timeout"`
	// RetryInterval is how often Acquire looks at a lease that is another's, ±10 %. Where the store
	// can watch, a release is noticed at once all the same. Default 5s, or RenewInterval if that is
	// less.
	RetryInterval time.Duration `yaml:"retry-interval"`
	// Drain is the time that guarded work needs to stop after its context has ended. It is taken
	// from the TTL. Default TTL/6.
	Drain time.Duration `yaml:"drain"`
	// ClockRateError bounds how much faster or slower than true time the clocks of holders and
	// contenders run. Exclusion rests on it; differences between clocks do not matter. Default 0.01.
	ClockRateError float64 `yaml:"clock-rate-error"`
	// Margin is kept by both sides for scheduling and delivery. Default TTL/50, at least 250ms or, if that
	// is less, TTL/20.
	Margin time.Duration `yaml:"margin"`
	// Forever lets leases never expire: only a release ends a tenure, or Lease.ForceRelease by somebody
	// who knows that the holder is dead. Until then a crash leaves the lease held. It needs a store that is a
	// SessionKeeper. Default false.
	Forever bool `yaml:"forever"`
	// Fair serves those who wait in Acquire in the order in which they have come; else, after a release, whoever
	// comes first wins. It needs a store that is a Queuer, and costs one call for each look at the lease and one
	// after it is granted. A session that does not reach the store, or is paused, loses its place after three
	// looks, which is three times the lesser of RetryInterval and RenewInterval, and two OperationTimeouts; after TTL
	// if that is less.
	// TryAcquire does not wait, so it has no place, and takes what is free; so does a session that is not Fair.
	// All goroutines of a session have one place. Default false.
	Fair bool `yaml:"fair"`
	// LockDelay is kept by others in addition to TTL, after a crash or an outage, not after a release: time
	// for what the holder has sent to arrive, where fencing is not possible. Default 0. TTL and LockDelay
	// together are at most 24h.
	LockDelay time.Duration `yaml:"lock-delay"`
	// Inherit lets a session take at once, without waiting for TTL and LockDelay, a lease that another session of the same
	// Owner holds: a process that has been started again goes on where the one before was killed. It has the next token. It
	// gives up exclusion among sessions of one Owner: of two that run at once both may believe for up to TTL that they hold the
	// lease, until the first learns of it at its next renewal, and only fencing tells their effects apart. So set it only
	// where something else keeps processes of one Owner apart, such as the port that they listen on or a StatefulSet,
	// and set Owner to what that is, as host:port. It is required then. Default false.
	Inherit bool `yaml:"inherit"`
	// Meters is where the metrics go, named concord.lease.*; see Status for what they count. Default
	// otel.GetMeterProvider().
	Meters metric.MeterProvider `yaml:"-"`
	// Clock is for tests that give each session a clock of its own, as package testkit does. Default: the
	// clocks of this process.
	Clock Clock `yaml:"-"`
	// Logger gets losses (Warn), tenures that begin or are released (Debug) and panics of handlers
	// (Error). Default slog.Default.
	Logger *slog.Logger `yaml:"-"`
}

// maxOwner keeps a record within the bounds of every store.
const maxOwner = 2048

// withDefaults fills the zero fields.
func (c Config) withDefaults() Config {
	if c.Owner == "" {
		c.Owner = defaultOwner()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	defaultTo(&c.TTL, 30*time.Second)
	defaultTo(&c.RenewInterval, c.TTL/3)
	defaultTo(&c.OperationTimeout, min(3*time.Second, c.TTL/10))
	defaultTo(&c.RetryInterval, min(5*time.Second, c.RenewInterval))
	defaultTo(&c.Drain, c.TTL/6)
	defaultTo(&c.Margin, max(c.TTL/50, min(250*time.Millisecond, c.TTL/20)))
	if c.ClockRateError == 0 {
		c.ClockRateError = 0.01
	}
	return c
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

// Validate reports every problem at once, after filling in the defaults. The tightest rule is that
// two renewals may fail and the work still stops in time:
//
//	TTL·(1−ClockRateError) − Margin − Drain >= 2·RenewInterval + OperationTimeout
func (c Config) Validate() error {
	unnamed := c.Owner == ""
	c = c.withDefaults()
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...))
	}
	if c.Inherit && unnamed {
		bad("Inherit needs Owner, the same in each process that is to inherit from the one before")
	}
	if len(c.Owner) > maxOwner || !utf8.ValidString(c.Owner) {
		bad("Owner (%.80q) has %d bytes, it must be UTF-8 of at most %d", c.Owner, len(c.Owner), maxOwner)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"TTL", c.TTL}, {"RenewInterval", c.RenewInterval}, {"OperationTimeout", c.OperationTimeout},
		{"RetryInterval", c.RetryInterval}, {"Drain", c.Drain}, {"Margin", c.Margin},
	} {
		if d.value <= 0 {
			bad("%s (%v) must be above 0", d.name, d.value)
		}
	}
	if c.LockDelay < 0 {
		bad("LockDelay (%v) must be at least 0", c.LockDelay)
	}
	if c.TTL > core.MaxTTL || c.LockDelay > core.MaxTTL-c.TTL {
		bad("TTL (%v) and LockDelay (%v) together must be at most %v", c.TTL, c.LockDelay, core.MaxTTL)
	}
	if !(c.ClockRateError >= 0 && c.ClockRateError < 0.5) { // also false for NaN
		bad("ClockRateError (%v) must be at least 0 and below 0.5", c.ClockRateError)
	}
	if c.RenewInterval >= c.TTL/2 {
		bad("RenewInterval (%v) must be below half of TTL (%v)", c.RenewInterval, c.TTL)
	}
	usable := c.TTL - time.Duration(float64(c.TTL)*c.ClockRateError) - c.Margin - c.Drain
	if need := 2*c.RenewInterval + c.OperationTimeout; usable < need {
		bad("TTL less ClockRateError, Margin (%v) and Drain (%v) leaves %v of %v, which must be at least "+
			"2·RenewInterval (%v) + OperationTimeout (%v) = %v",
			c.Margin, c.Drain, usable, c.TTL, c.RenewInterval, c.OperationTimeout, need)
	}
	return errors.Join(errs...)
}

func (c Config) core(nonce string) core.Config {
	return core.Config{
		Owner: c.Owner, Nonce: nonce, TTL: c.TTL, Renew: c.RenewInterval, Operation: c.OperationTimeout,
		Retry: c.RetryInterval, Drain: c.Drain, Margin: c.Margin, RateError: c.ClockRateError,
		LockDelay: c.LockDelay, Forever: c.Forever, Fair: c.Fair, Inherit: c.Inherit,
		Jitter: rand.Float64,
	}
}
