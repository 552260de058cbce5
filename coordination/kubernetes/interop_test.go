//go:build stores

package kubernetes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/faulty"
	"github.com/concord-go/concord/coordination/kubernetes"
	"github.com/concord-go/concord/coordination/leasestore"
)

// shortTTL is short enough for a test to wait for an expiry.
const shortTTL = 15 * time.Second

func short(owner string) coordination.Config {
	return coordination.Config{Owner: owner, TTL: shortTTL, RenewInterval: time.Second,
		RetryInterval: 300 * time.Millisecond, Drain: time.Second}
}

// candidate is a leader election of client-go for a lease.
type candidate struct {
	leads chan bool // receives true and false in turns
	stop  func()
}

func campaign(t *testing.T, c clientv1.CoordinationV1Interface, object, identity string,
	release bool) candidate {
	t.Helper()
	out := candidate{leads: make(chan bool, 10)}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: object}, Client: c,
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity}},
		LeaseDuration: shortTTL, RenewDeadline: shortTTL * 2 / 3,
		RetryPeriod: 300 * time.Millisecond, ReleaseOnCancel: release,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { out.leads <- true },
			OnStoppedLeading: func() { out.leads <- false },
		},
	})
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { elector.Run(ctx) })
	out.stop = func() { cancel(); wg.Wait() }
	t.Cleanup(out.stop)
	return out
}

// TestInterop_LeaderElection: client-go and a session exclude each other and take over from each
// other, after a release and after a crash, in both directions.
func TestInterop_LeaderElection(t *testing.T) {
	t.Parallel()
	// The role of the manifest lacks "update", which client-go's election uses.
	cfg := config(t)
	cfg.BearerToken = env(t, "CONCORD_KUBERNETES_ADMIN")
	elections := client(t, cfg)
	s := open(t, client(t, config(t)), "")
	name := fresh() + "leader"
	l := faulty.Session(t, s, short("ours")).Lease(name)

	g, err := faulty.Try(t, l)
	must(t, err)
	theirs := campaign(t, elections, name, "theirs", true)
	// The session renews the lease meanwhile.
	for begun := time.Now(); time.Since(begun) < shortTTL*4/3; time.Sleep(200 * time.Millisecond) {
		must(t, g.Check())
		if len(theirs.leads) > 0 {
			t.Fatal("client-go leads beside a holder")
		}
	}
	must(t, g.Release(t.Context()))
	if !<-theirs.leads {
		t.Fatal("client-go stopped before it led")
	}
	for begun := time.Now(); time.Since(begun) < shortTTL*4/3; time.Sleep(200 * time.Millisecond) {
		_, err = faulty.Try(t, l)
		held, ok := errors.AsType[*coordination.HeldError](err)
		if !ok || held.Holder.Owner != "theirs" || held.Holder.Token < g.Token() {
			t.Fatalf("beside client-go: %v", err)
		}
	}
	theirs.stop() // releases
	next, err := l.Acquire(t.Context())
	must(t, err)
	if next.Token() <= g.Token() {
		t.Errorf("%v after %v", next, g)
	}
	must(t, next.Release(t.Context()))

	dies := campaign(t, elections, name, "dies", false)
	<-dies.leads
	dies.stop() // without releasing
	last, err := l.Acquire(t.Context())
	must(t, err)
	object, err := operator(t).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	if n := *object.Spec.LeaseTransitions; n < 3 {
		t.Errorf("%d transitions after five holders", n)
	}
	must(t, last.Release(t.Context()))
}

// TestInterop_ClientGoTakesOverFromTheDead waits for the TTL of a session that is no longer
// renewed.
func TestInterop_ClientGoTakesOverFromTheDead(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.BearerToken = env(t, "CONCORD_KUBERNETES_ADMIN")
	s, name := open(t, client(t, config(t)), ""), fresh()+"dead"
	_, err := s.Swap(t.Context(), name, "", leasestore.Record{Owner: "dead", Nonce: "n", Token: 7,
		TTL: 2 * time.Second})
	must(t, err)
	begun := time.Now()
	theirs := campaign(t, client(t, cfg), name, "theirs", true)
	if !<-theirs.leads || time.Since(begun) < 2*time.Second {
		t.Errorf("client-go led after %v", time.Since(begun))
	}
	rec, _, err := s.Load(t.Context(), name)
	if err != nil || rec.Token != 7 || rec.Owner != "theirs" {
		t.Errorf("the token is not kept: %+v %v", rec, err)
	}
}

// TestInterop_ExclusiveIsLeftAlone: client-go does not take a lease that a session keeps without
// renewing its object, and takes it after the release.
func TestInterop_ExclusiveIsLeftAlone(t *testing.T) {
	t.Parallel()
	cfg := config(t)
	cfg.BearerToken = env(t, "CONCORD_KUBERNETES_ADMIN")
	elections := client(t, cfg)
	s := openWith(t, elections, "", kubernetes.Config{Namespace: namespace, Exclusive: true})
	name := fresh() + "exclusive"
	g, err := faulty.Try(t, faulty.Session(t, s, short("ours")).Lease(name))
	must(t, err)
	theirs := campaign(t, elections, name, "theirs", true)
	select {
	case <-theirs.leads:
		t.Fatal("client-go leads beside a holder")
	case <-time.After(shortTTL * 4 / 3):
	}
	must(t, g.Check())
	object, err := operator(t).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	if !object.Spec.RenewTime.Equal(object.Spec.AcquireTime) {
		t.Error("the object was renewed, so this shows nothing")
	}
	must(t, g.Release(t.Context()))
	if !<-theirs.leads {
		t.Fatal("client-go stopped before it led")
	}
}

// TestObject_ReadsRightForEverybody checks the fields, and the output of kubectl get lease, which
// is a table made by the server.
func TestObject_ReadsRightForEverybody(t *testing.T) {
	s, name := open(t, client(t, config(t)), ""), fresh()+"fields"
	l := faulty.Session(t, s, coordination.Config{Owner: "pod-7"}).Lease(name)
	g, err := faulty.Try(t, l)
	must(t, err)
	object, err := operator(t).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	spec := object.Spec
	if !strings.HasPrefix(*spec.HolderIdentity, "pod-7_") || *spec.LeaseDurationSeconds != 8 ||
		*spec.LeaseTransitions != 0 ||
		time.Since(spec.AcquireTime.Time) > time.Minute ||
		time.Since(spec.RenewTime.Time) > time.Minute {
		t.Errorf("got %+v", spec)
	}
	if row := table(t, name); row["Name"] != name || row["Holder"] != *spec.HolderIdentity ||
		row["Age"] == "" {
		t.Errorf("kubectl get lease shows %v", row)
	}
	must(t, g.Release(t.Context()))
	if row := table(t, name); row["Holder"] != "" {
		t.Errorf("after release kubectl get lease shows %v", row)
	}
	g, err = faulty.Try(t, l)
	must(t, err)
	object, err = operator(t).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	if *object.Spec.LeaseTransitions != 1 || !object.Spec.AcquireTime.After(spec.AcquireTime.Time) {
		t.Errorf("second tenure: %+v", object.Spec)
	}
	must(t, g.Release(t.Context()))
}

// table returns the row that the server prints for a Lease, by the headings of the columns.
func table(t *testing.T, name string) map[string]string {
	t.Helper()
	h, err := rest.HTTPClientFor(config(t))
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		fmt.Sprintf("%s/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s",
			env(t, "CONCORD_KUBERNETES"), namespace, name), http.NoBody)
	must(t, err)
	r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	answer, err := h.Do(r)
	must(t, err)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	var got metav1.Table
	must(t, json.Unmarshal(body, &got))
	if len(got.Rows) != 1 {
		t.Fatalf("got %s", body)
	}
	cells := map[string]string{}
	for i, c := range got.Rows[0].Cells {
		cells[got.ColumnDefinitions[i].Name] = fmt.Sprint(c)
	}
	return cells
}

// patient gives each operation more time than a busy machine needs, so that errors must come from
// the store.
var patient = coordination.Config{TTL: 5 * time.Minute, OperationTimeout: 30 * time.Second,
	RetryInterval: time.Second, Drain: time.Second}

// TestRotatedToken: the client reads the token again from its file, also in the middle of a tenure.
// Seen in akka management 1412, 1413, actor-ts 760.
func TestRotatedToken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(path, []byte("expired"), 0o600))
	cfg := config(t)
	cfg.BearerToken, cfg.BearerTokenFile = "", path
	s, name := open(t, client(t, cfg), ""), fresh()+"rotated"
	l := faulty.Session(t, s, patient).Lease(name)
	_, err := l.TryAcquire(t.Context())
	if !apierrors.IsUnauthorized(err) || !errors.Is(err, coordination.ErrUnknown) ||
		errors.Is(err, coordination.ErrHeld) {
		t.Fatalf("with an expired token: %v", err)
	}
	if _, err := s.Swap(t.Context(), name, "", leasestore.Record{Token: 1}); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("swap with an expired token: %v", err)
	}
	must(t, os.WriteFile(path, []byte(env(t, "CONCORD_KUBERNETES_TOKEN")), 0o600))
	g, err := l.Acquire(t.Context())
	must(t, err)
	must(t, g.Release(t.Context()))
}

// TestRights: the manifest grants no more than necessary, and other requests are certainly refused.
func TestRights(t *testing.T) {
	leases := client(t, config(t)).Leases(namespace)
	s, name := open(t, client(t, config(t)), ""), fresh()+"rights"
	_, err := s.Swap(t.Context(), name, "", leasestore.Record{Token: 1})
	must(t, err)
	if err := leases.Delete(t.Context(), name, metav1.DeleteOptions{}); !apierrors.IsForbidden(
		err) {
		t.Errorf("delete: %v", err)
	}
	elsewhere, err := kubernetes.New(client(t, config(t)), kubernetes.Config{Namespace: "default"})
	must(t, err)
	if _, err := elsewhere.Swap(t.Context(), name, "", leasestore.Record{Token: 1}); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("in another namespace: %v", err)
	}
	_, err = faulty.Session(t, elsewhere, patient).Lease(name).TryAcquire(t.Context())
	if !errors.Is(err, coordination.ErrUnknown) || errors.Is(err, coordination.ErrHeld) ||
		!strings.Contains(err.Error(),
			`cannot get resource "leases" in API group "coordination.k8s.io" in the namespace "default"`) {
		t.Errorf("acquire in another namespace: %v", err)
	}
}

// TestForeignObject: an object made by another program is read correctly, and its additions stay.
func TestForeignObject(t *testing.T) {
	s, name := open(t, client(t, config(t)), ""), fresh()+"foreign"
	_, err := operator(t).Create(t.Context(),
		&v1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"team": "a"}}}, metav1.CreateOptions{})
	must(t, err)
	g, err := faulty.Try(t, faulty.Session(t, s, coordination.Config{}).Lease(name))
	must(t, err)
	object, err := operator(t).Get(t.Context(), name, metav1.GetOptions{})
	must(t, err)
	if object.Labels["team"] != "a" {
		t.Errorf("labels %v", object.Labels)
	}
	must(t, g.Release(t.Context()))
}

func TestNew_SaysWhatIsWrong(t *testing.T) {
	c := client(t, config(t))
	for _, bad := range []string{"", "Shop", "a/b", strings.Repeat("x", 64)} {
		if _, err := kubernetes.New(c, kubernetes.Config{Namespace: bad}); !errors.Is(err,
			coordination.ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := kubernetes.New(nil, kubernetes.Config{Namespace: "a"}); !errors.Is(err,
		coordination.ErrInvalid) {
		t.Errorf("nil: %v", err)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	s := open(b, client(b, config(b)), fresh())
	l := faulty.Session(b, s, coordination.Config{}).Lease("bench")
	for b.Loop() {
		g, err := l.TryAcquire(b.Context())
		must(b, err)
		must(b, g.Release(b.Context()))
	}
}
