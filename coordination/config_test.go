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
		if err := (Config{TTL: ttl}).Validate(); err != nil {
			t.Errorf("TTL %v: %v", ttl, err)
		}
	}
	c := Config{}.withDefaults()
	if c.TTL != 30*time.Second || c.RenewInterval != 10*time.Second ||
		c.OperationTimeout != 3*time.Second ||
		c.Drain != 5*time.Second || c.Margin != 600*time.Millisecond || c.Owner == "" {
		t.Errorf("defaults %+v", c)
	}
}

// TestConfig_ReportsEveryProblem tests A6 and A7.
func TestConfig_ReportsEveryProblem(t *testing.T) {
	err := Config{TTL: 25 * time.Hour, RenewInterval: 13 * time.Hour,
		OperationTimeout: -time.Second,
		RetryInterval:    -1, Drain: -1, Margin: -1, ClockRateError: math.NaN()}.Validate()
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
		"Queuer": {Fair: true}} {
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
	if err := c.Validate(); err != nil {
		t.Errorf("at the bound: %v", err)
	}
	c.Drain++
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "2·RenewInterval") {
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
