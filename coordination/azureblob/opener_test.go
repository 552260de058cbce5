package azureblob_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/concord-go/concord/coordination/azureblob"
)

// identity is an endpoint of managed identities, as App Service has one. It returns the requests
// for tokens so far.
func identity(t *testing.T) (asked func() []string) {
	var mu sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, r.Header.Get("X-Identity-Header")+" "+r.URL.Query().Get("resource"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token","token_type":"Bearer","expires_on":"%d"}`,
			time.Now().Add(time.Hour).Unix())
	}))
	t.Cleanup(server.Close)
	t.Setenv("IDENTITY_ENDPOINT", server.URL)
	t.Setenv("IDENTITY_HEADER", "of-this-app")
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "prod")
	t.Setenv("AZURE_CLIENT_ID", rand.Text()) // the SDK caches tokens in the process, by this id
	for _, other := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_SECRET",
		"AZURE_FEDERATED_TOKEN_FILE"} {
		t.Setenv(other, "") // restores it
		if err := os.Unsetenv(other); err != nil {
			t.Fatal(err)
		}
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// dialled returns the address of a server that closes each connection, and a context that ends with
// the first one.
func dialled(t *testing.T) (address string, ctx context.Context) {
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var server sync.WaitGroup
	server.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
			cancel()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		server.Wait()
		cancel()
	})
	return listener.Addr().String(), ctx
}

// Without a key and without a signature, the SDK's default credential is used, here a managed
// identity. It is asked for a token for storage before the store is dialled.
func TestOpener_UsesTheIdentityOfTheMachine(t *testing.T) {
	for name, c := range map[string]struct {
		query        string
		account, key string
		asked        string
	}{
		"identity":  {"", "", "", "[of-this-app https://storage.azure.com]"},
		"signature": {"?sig=x", "", "", "[]"},
		"key":       {"", "shop", "aGVsbG8=", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := identity(t)
			address, ctx := dialled(t)
			open, err := azureblob.Opener(func(into any) error {
				*into.(*azureblob.Settings) = azureblob.Settings{Account: c.account,
					AccountKey: c.key, URL: "https://" + address + "/leases" + c.query}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			store, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := store.Load(ctx, "x"); err == nil || ctx.Err() == nil {
				t.Errorf("loaded without a server, or did not dial: %v", err)
			}
			if got := fmt.Sprint(asked()); got != c.asked {
				t.Errorf("asked for tokens %s, want %s", got, c.asked)
			}
		})
	}
}
