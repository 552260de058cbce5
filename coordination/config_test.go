package coordination

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestConfig_DefaultsAreValid(t *testing.T) {
	for _, ttl := range []time.Duration{0, 10 * time.Millisecond, time.Second, 4 * time.Second,
		4420 * time.Millisecond, 5 * time.Second, 10 * time.Second, time.Minute, time.Hour,
		24 * time.Hour} {
		if err := (Config{TTL: ttl}).validate(); err != nil {
			t.Errorf("TTL %v: %v", ttl, err)
		}
	}
	c := Config{}.withDefaults()
	if c.TTL != 8*time.Second || c.RenewInterval.Round(10*time.Millisecond) !=
		1970*time.Millisecond || c.OperationTimeout != 2400*time.Millisecond ||
		c.Drain.Round(10*time.Millisecond) != 1330*time.Millisecond ||
		c.Margin != 250*time.Millisecond || c.Owner == "" {
		t.Errorf("defaults %+v", c)
	}
}

// TestConfig_OneFieldAlone sets one field to each of its edges. The defaults of the others leave it
// room, and a number without a unit, which is nanoseconds, is not a duration of a lease.
func TestConfig_OneFieldAlone(t *testing.T) {
	for _, ok := range []Config{
		{TTL: 10 * time.Millisecond}, {TTL: 100 * time.Millisecond}, {TTL: 24 * time.Hour},
		{RenewInterval: time.Millisecond}, {RenewInterval: 2700 * time.Millisecond},
		{OperationTimeout: time.Millisecond}, {OperationTimeout: 4 * time.Second},
		{RetryInterval: time.Millisecond}, {RetryInterval: 24 * time.Hour},
		{Drain: 1}, {Drain: 2 * time.Second}, {Drain: 3500 * time.Millisecond},
		{Margin: 1}, {Margin: 2 * time.Second},
		{ClockRateError: 1e-9}, {ClockRateError: 0.2},
		{LockDelay: 24*time.Hour - 8*time.Second},
		{TTL: time.Second, ClockRateError: 0.05}, {TTL: time.Minute, Drain: 20 * time.Second},
	} {
		if err := ok.validate(); err != nil {
			t.Errorf("%+v: %v", ok, err)
		}
	}
	for want, bad := range map[string]Config{
		"TTL (30ns) must be at least 10ms":              {TTL: 30},
		"TTL (-1ns) must be at least 10ms":              {TTL: -1},
		"RenewInterval (10ns) must be at least 1ms":     {RenewInterval: 10},
		"OperationTimeout (-3s) must be at least 1ms":   {OperationTimeout: -3 * time.Second},
		"RetryInterval (5ns) must be at least 1ms":      {RetryInterval: 5},
		"Drain (-1ns) must be above 0":                  {Drain: -1},
		"Margin (-1ns) must be above 0":                 {Margin: -1},
		"TTL (8s) and LockDelay (24h0m0s) together":     {LockDelay: 24 * time.Hour},
		"ClockRateError (0.5) must be at least 0":       {ClockRateError: 0.5},
		"2·RenewInterval (800ms) + OperationTimeout (8": {Drain: 5500 * time.Millisecond},
	} {
		err := bad.validate()
		if err == nil || !strings.Contains(err.Error(), want) ||
			strings.Count(err.Error(), ErrInvalid.Error()) > 2 {
			t.Errorf("%+v: got\n%v\nwant %s", bad, err, want)
		}
	}
}

// TestConfig_ReportsEveryProblem tests A6 and A7.
func TestConfig_ReportsEveryProblem(t *testing.T) {
	err := Config{TTL: 25 * time.Hour, RenewInterval: 13 * time.Hour,
		OperationTimeout: -time.Second,
		RetryInterval:    -1, Drain: -1, Margin: -1, ClockRateError: math.NaN()}.validate()
	for _, name := range []string{"TTL (25h0m0s)", "RenewInterval (13h0m0s)",
		"OperationTimeout (-1s)", "RetryInterval",
		"Drain", "Margin", "ClockRateError (NaN)"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named in:\n%v", name, err)
		}
	}
	if !errors.Is(err, ErrInvalid) {
		t.Errorf("not ErrInvalid: %v", err)
	}
	if _, openErr := Open(nil, Config{}); !errors.Is(openErr, ErrInvalid) {
		t.Errorf("no store: %v", openErr)
	}
	for ability, c := range map[string]Config{"SessionKeeper": {Forever: true},
		"Documents": {Fair: true}} {
		if _, openErr := Open(struct{ Store }{}, c); !errors.Is(openErr, ErrInvalid) ||
			!strings.Contains(openErr.Error(), ability) {
			t.Errorf("a store that is no %s: %v", ability, openErr)
		}
	}
}

// TestConfig_TwoRenewalsMayFail tests the invariant at its bound.
func TestConfig_TwoRenewalsMayFail(t *testing.T) {
	c := Config{TTL: 30 * time.Second, RenewInterval: 10 * time.Second,
		OperationTimeout: 3 * time.Second,
		Margin:           600 * time.Millisecond, Drain: 6100 * time.Millisecond}
	if err := c.validate(); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	c.Drain++
	if err := c.validate(); err == nil || !strings.Contains(err.Error(), "2·RenewInterval") {
		t.Errorf("past the bound: %v", err)
	}
}

func TestErrors_MatchAlsoWrapped(t *testing.T) {
	boom := errors.New("boom")
	lost := &LostError{Why: Expired, Err: boom}
	for _, c := range []struct{ err, is error }{
		{&HeldError{}, ErrHeld}, {lost, ErrLost}, {lost, boom}, {&LostError{}, ErrLost},
		{&LostError{Why: TakenOver, Err: &HeldError{}}, ErrHeld},
	} {
		if !errors.Is(errors.Join(c.err), c.is) || c.err.Error() == "" {
			t.Errorf("%v is not %v", c.err, c.is)
		}
	}
	if s := Loss(9).String(); s != "Loss(9)" {
		t.Error(s)
	}
}
