package etcd_test

import (
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/etcd"
)

func TestNew_SaysWhatIsWrong(t *testing.T) {
	if _, err := etcd.New(nil, etcd.Config{}); !errors.Is(err, coordination.ErrInvalid) {
		t.Errorf("nil: %v", err)
	}
	if _, err := etcd.New(&clientv3.Client{},
		etcd.Config{Prefix: strings.Repeat("x", 1025)}); !errors.Is(err, coordination.ErrInvalid) {
		t.Errorf("prefix: %v", err)
	}
}

func TestLockName_NoNameIsBelowAnother(t *testing.T) {
	s, err := etcd.New(&clientv3.Client{}, etcd.Config{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, name := range []string{"a", "a/b", "a%2Fb", "a b", "a+b", "A", ".", "..", "ä"} {
		key := s.LockName(name)
		if strings.Contains(strings.TrimPrefix(key, "concord/leases/"), "/") || seen[key] != "" {
			t.Errorf("%q and %q: %q", name, seen[key], key)
		}
		seen[key] = name
	}
}
