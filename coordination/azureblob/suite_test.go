//go:build stores

package azureblob_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"go.uber.org/goleak"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/azureblob"
	"github.com/concord-go/concord/coordination/internal/takeover"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/testkit/leasetest"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if name, is := takeover.Place(); is {
		fmt.Fprintln(os.Stderr, holdAll(name))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// connect returns a container of a real blob service, or of Azurite. Without one these tests fail.
func connect(t testing.TB, name string) *container.Client {
	t.Helper()
	connection := os.Getenv("CONCORD_AZURE")
	if connection == "" {
		t.Fatal("CONCORD_AZURE is no connection string: run make stores")
	}
	// The default transport of the SDK is never closed, so the test uses its own.
	h := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 50}}
	t.Cleanup(h.CloseIdleConnections)
	c, err := container.NewClientFromConnectionString(connection, name, &container.ClientOptions{
		ClientOptions: azcore.ClientOptions{Transport: h}})
	must(t, err)
	return c
}

func open(t testing.TB, container string) azureblob.Store {
	t.Helper()
	s, err := azureblob.New(connect(t, container), azureblob.Config{})
	must(t, err)
	must(t, s.Install(t.Context()))
	return s
}

// fresh returns a different name for each test, so that tests share nothing.
func fresh() string { return "t" + strings.ToLower(rand.Text()) }

// named is a store with the name of its container.
type named struct {
	azureblob.Store
	container string
}

func TestConformance(t *testing.T) {
	begin := func(t *testing.T, container string) leasestore.Store {
		return named{open(t, container), container}
	}
	the := func(s leasestore.Store, name string) *blob.Client {
		return connect(t, s.(named).container).NewBlobClient(s.(named).BlobName(name))
	}
	leasetest.Run(t, func(t *testing.T) leasestore.Store {
		return begin(t, fresh())
	}, leasetest.Options{
		Outside: true, TokensJump: true,
		Reopen: func(t *testing.T, s leasestore.Store) (leasestore.Store, error) {
			return begin(t, s.(named).container), nil
		},
		Delete: func(s leasestore.Store, name string) error {
			_, err := the(s, name).Delete(t.Context(), nil)
			return err
		},
		Damage: func(s leasestore.Store, name string) error {
			b := connect(t, s.(named).container).NewBlockBlobClient(s.(named).BlobName(name))
			_, err := b.UploadBuffer(t.Context(), []byte("hello"), nil)
			return err
		},
	})
}

func TestLive(t *testing.T) {
	containers := map[string]string{} // of the parts
	leasetest.Live(t, func(t *testing.T) leasestore.Store {
		if containers[t.Name()] == "" {
			containers[t.Name()] = fresh()
		}
		return open(t, containers[t.Name()])
	}, leasetest.LiveOptions{Contenders: 50})
}

// TestRefusals covers a missing container, and a blob under one of Azure's own leases: the holder
// is unknown, and nothing is written.
func TestRefusals(t *testing.T) {
	absent, err := azureblob.New(connect(t, fresh()), azureblob.Config{})
	must(t, err)
	if _, _, err := absent.Load(t.Context(), "x"); err == nil {
		t.Error("no container, but a record")
	}
	if _, err := absent.Swap(t.Context(), "x", "", leasestore.Record{Token: 1}); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("no container: %v", err)
	}
	name := fresh()
	s := open(t, name)
	ver, err := s.Swap(t.Context(), "x", "", leasestore.Record{Token: 1})
	must(t, err)
	l, err := lease.NewBlobClient(connect(t, name).NewBlobClient(s.BlobName("x")), nil)
	must(t, err)
	_, err = l.AcquireLease(t.Context(), 15, nil)
	must(t, err)
	if _, err := s.Swap(t.Context(), "x", ver, leasestore.Record{Token: 1}); !errors.Is(err,
		leasestore.ErrRefused) {
		t.Errorf("under a blob lease: %v", err)
	}
	if _, err := azureblob.New(nil, azureblob.Config{}); !errors.Is(err, coordination.ErrInvalid) {
		t.Errorf("nil: %v", err)
	}
	if _, err := azureblob.New(connect(t, name), azureblob.Config{
		Prefix: strings.Repeat("x", 300)}); !errors.Is(err, coordination.ErrInvalid) {
		t.Errorf("prefix: %v", err)
	}
}
