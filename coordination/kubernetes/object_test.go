package kubernetes

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/concord-go/concord/coordination/leasestore"
)

func TestObjectName_NamesNeverMeet(t *testing.T) {
	made := ObjectName("Billing")
	if ObjectName("billing.eu-1") != "billing.eu-1" || !strings.HasPrefix(made, hashed) {
		t.Errorf("got %q", made)
	}
	if ObjectName(made) == made {
		t.Error("a name that looks like a hash is taken for one")
	}
}

// object returns the object that a write of rec produces.
func object(name string, rec leasestore.Record) *v1.Lease {
	return &v1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "41",
		Annotations: newAnnotations(name, rec)}, Spec: spec(rec, seen{}, time.Now())}
}

// TestRead_Objects reads objects of this module, of other programs, and damaged ones.
func TestRead_Objects(t *testing.T) {
	ours := leasestore.Record{Owner: "a_b", Nonce: "n", Token: 7, Attempt: 3,
		TTL: 1500 * time.Millisecond}
	if got, ver, err := read("x", object("x", ours)); got != ours || ver != "41.0.7" || err != nil {
		t.Errorf("ours: %+v %q %v", got, ver, err)
	}
	for _, kept := range []leasestore.Record{
		{Owner: "a", Nonce: "n", Token: 7, Attempt: 3, TTL: time.Second, Session: 9},
		{Owner: "a", Nonce: "n", Token: 7, Attempt: 3, TTL: time.Second, Forever: true},
	} {
		l := object("x", kept)
		if got, _, err := read("x", l); got != kept || err != nil {
			t.Errorf("%+v became %+v, %v", kept, got, err)
		}
		if *l.Spec.LeaseDurationSeconds != math.MaxInt32 {
			t.Errorf("%+v: others may take it after %d s", kept, *l.Spec.LeaseDurationSeconds)
		}
	}
	taken := object("x", ours)
	taken.Spec.HolderIdentity, taken.Spec.LeaseDurationSeconds = new("them"), new(int32(20))
	if got, _, err := read("x", taken); err != nil ||
		got != (leasestore.Record{Owner: "them", Nonce: "holder:them", Token: 7,
			TTL: 20 * time.Second}) {
		t.Errorf("taken over: %+v %v", got, err)
	}
	bare := &v1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "41"}}
	if got, _, err := read("x", bare); err != nil || got != (leasestore.Record{Token: 41}) {
		t.Errorf("bare: %+v %v", got, err)
	}
	for what, damage := range map[string]func(*v1.Lease){
		"another name": func(l *v1.Lease) { l.Annotations[atName] = "y" },
		"token":        func(l *v1.Lease) { l.Annotations[atToken] = "-1" },
		"attempt":      func(l *v1.Lease) { delete(l.Annotations, atAttempt) },
		"ttl":          func(l *v1.Lease) { l.Annotations[atTTL] = "soon" },
		"session":      func(l *v1.Lease) { l.Annotations[atSession] = "0" },
		"forever":      func(l *v1.Lease) { l.Annotations[atForever] = "perhaps" },
		"negative ttl": func(l *v1.Lease) { l.Annotations[atTTL] = "-1s" },
		"resource version": func(l *v1.Lease) {
			delete(l.Annotations, atToken)
			l.ResourceVersion = "abc"
		},
	} {
		l := object("x", ours)
		damage(l)
		if _, _, err := read("x", l); !errors.Is(err, leasestore.ErrDamaged) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("41.0.7")
	f.Add("nonsense")
	f.Fuzz(func(t *testing.T, s string) {
		v, ok := parse(leasestore.Version(s))
		if !ok {
			return
		}
		if again, ok := parse(v.version()); again != v || !ok {
			t.Errorf("%q is %+v, and again %+v", s, v, again)
		}
	})
}
