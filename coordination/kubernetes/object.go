package kubernetes

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	v1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/leasestore"
)

const (
	maxName   = 16 << 10
	hashed    = "concord-" // before the hash of a name
	foreign   = "holder:"  // before the identity of a holder of another program
	anyTTL    = 15 * time.Second
	domain    = "concord-go.github.io/"
	atName    = domain + "name"
	atNonce   = domain + "nonce"
	atToken   = domain + "token"
	atAttempt = domain + "attempt"
	atTTL     = domain + "ttl"
	atSession = domain + "session" // of a record that its session record keeps alive
	atForever = domain + "forever"
	atWrite   = domain + "write" // changes in each write, so that each gets a new version
)

// ObjectName returns the name of the Lease object of a lease.
func ObjectName(name string) string {
	if len(validation.IsDNS1123Subdomain(name)) == 0 && !strings.HasPrefix(name, hashed) {
		return name
	}
	return hashed + hashOf(name)
}

func hashOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

func objectName(name string) (string, error) {
	if len(name) > maxName {
		return "", fmt.Errorf("%w: kubernetes: name of %d bytes, at most %d", leasestore.ErrRefused,
			len(name), maxName)
	}
	if !utf8.ValidString(name) {
		return "", fmt.Errorf("%w: kubernetes: name %.80q is not UTF-8", leasestore.ErrRefused,
			name)
	}
	return ObjectName(name), nil
}

// seen is a decoded version: the identity of a state of the object, and the data that the next
// write needs.
type seen struct {
	resourceVersion string
	transitions     int32
	token           coordination.Token
}

func (s seen) version() leasestore.Version {
	return leasestore.Version(fmt.Sprintf("%s.%d.%d", s.resourceVersion, s.transitions, s.token))
}

func parse(v leasestore.Version) (s seen, ok bool) {
	parts := strings.Split(string(v), ".")
	if len(parts) != 3 || parts[0] == "" {
		return seen{}, false
	}
	transitions, err := strconv.ParseInt(parts[1], 10, 32)
	token, err2 := strconv.ParseUint(parts[2], 10, 64)
	return seen{parts[0], int32(transitions), coordination.Token(token)}, err == nil && err2 == nil
}

// number returns a resourceVersion as a number. It is one in all servers of today, and by contract
// since Kubernetes 1.35.
func number(resourceVersion string) (coordination.Token, error) {
	n, err := strconv.ParseUint(resourceVersion, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("resourceVersion %q is not a number, so tokens cannot continue from it",
			resourceVersion)
	}
	return coordination.Token(n), nil
}

// read returns the record and the version of an object.
func read(name string, l *v1.Lease) (leasestore.Record, leasestore.Version, error) {
	rec, err := record(name, l)
	if err != nil {
		return leasestore.Record{}, "", fmt.Errorf("%w: kubernetes: Lease %s: %w",
			leasestore.ErrDamaged, l.Name, err)
	}
	return rec, seen{l.ResourceVersion, value(l.Spec.LeaseTransitions), rec.Token}.version(), nil
}

func record(name string, l *v1.Lease) (rec leasestore.Record, err error) {
	if of, ours := l.Annotations[atName]; ours && of != name {
		return rec, fmt.Errorf("record of %.80q", of)
	}
	if rec.Token, err = token(l); err != nil {
		return rec, err
	}
	holder := value(l.Spec.HolderIdentity)
	if holder == "" {
		return rec, nil
	}
	nonce := l.Annotations[atNonce]
	owner, ours := strings.CutSuffix(holder, "_"+nonce)
	if nonce == "" || !ours {
		rec.Owner, rec.Nonce, rec.TTL = holder, foreign+holder, anyTTL
		if seconds := value(l.Spec.LeaseDurationSeconds); seconds > 0 {
			rec.TTL = time.Duration(seconds) * time.Second
		}
		return rec, nil
	}
	rec.Owner, rec.Nonce = owner, nonce
	attempt, err := strconv.ParseUint(l.Annotations[atAttempt], 10, 64)
	if err != nil {
		return rec, fmt.Errorf("annotation %s: %w", atAttempt, err)
	}
	rec.Attempt = attempt
	if rec.TTL, err = time.ParseDuration(l.Annotations[atTTL]); err != nil || rec.TTL < 0 {
		return rec, fmt.Errorf("annotation %s: %.40q is not a duration", atTTL,
			l.Annotations[atTTL])
	}
	return rec, readKeeping(l, &rec)
}

// readKeeping reads how a lease is kept alive, if not by renewals of the object.
func readKeeping(l *v1.Lease, rec *leasestore.Record) error {
	if text, ok := l.Annotations[atSession]; ok {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || n == 0 {
			return fmt.Errorf("annotation %s: %.40q is not a token", atSession, text)
		}
		rec.Session = coordination.Token(n)
	}
	text, ok := l.Annotations[atForever]
	if ok && text != "true" {
		return fmt.Errorf("annotation %s: %.40q is not true", atForever, text)
	}
	rec.Forever = ok
	return nil
}

// token returns the token of the last tenure of this module. For an object of another program it
// returns the resourceVersion, as for a name without an object.
func token(l *v1.Lease) (coordination.Token, error) {
	text, ok := l.Annotations[atToken]
	if !ok {
		return number(l.ResourceVersion)
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %w", atToken, err)
	}
	return coordination.Token(n), nil
}

// annotations returns the annotations of a record; nil stands for an annotation to remove.
func annotations(name string, r leasestore.Record) map[string]*string {
	a := map[string]*string{
		atName: &name, atNonce: &r.Nonce, atToken: new(r.Token.String()),
		atAttempt: new(strconv.FormatUint(r.Attempt, 10)),
		atTTL:     new(r.TTL.String()), atWrite: new(rand.Text()), atSession: nil, atForever: nil,
	}
	if r.Session != 0 {
		a[atSession] = new(r.Session.String())
	}
	if r.Forever {
		a[atForever] = new("true")
	}
	return a
}

// newAnnotations returns the annotations of a new object.
func newAnnotations(name string, r leasestore.Record) map[string]string {
	there := map[string]string{}
	for key, text := range annotations(name, r) {
		if text != nil {
			there[key] = *text
		}
	}
	return there
}

// duration returns the time that others may count from renewTime. If renewTime does not show
// whether the holder is alive, others must not count at all.
func duration(r leasestore.Record) int32 {
	if r.Session != 0 || r.Forever {
		return math.MaxInt32
	}
	return wholeSeconds(r.TTL)
}

// spec returns the fields that all programs read. A new tenure has a new time and counts as a
// transition, except for the very first holder, as in client-go.
func spec(next leasestore.Record, before seen, now time.Time) v1.LeaseSpec {
	at := metav1.NewMicroTime(now)
	if next.Nonce == "" {
		return v1.LeaseSpec{HolderIdentity: new(""), LeaseDurationSeconds: new(int32(1)),
			RenewTime: &at}
	}
	s := v1.LeaseSpec{HolderIdentity: new(next.Owner + "_" + next.Nonce),
		LeaseDurationSeconds: new(duration(next)), RenewTime: &at}
	switch {
	case before.resourceVersion == "":
		s.AcquireTime, s.LeaseTransitions = &at, new(int32(0))
	case next.Token != before.token:
		s.AcquireTime, s.LeaseTransitions = &at, new(min(before.transitions, math.MaxInt32-1)+1)
	}
	return s
}

// patch contains only the changes.
func patch(name string, before seen, next leasestore.Record, now time.Time) any {
	return map[string]any{
		"metadata": map[string]any{"resourceVersion": before.resourceVersion,
			"annotations": annotations(name, next)},
		"spec": spec(next, before, now),
	}
}

// wholeSeconds returns d in seconds, rounded up.
func wholeSeconds(d time.Duration) int32 {
	return int32(min(max((d+time.Second-1)/time.Second, 1), math.MaxInt32))
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
