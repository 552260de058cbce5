package azureblob

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/internal/opened"
	"github.com/concord-go/concord/coordination/leaseconfig"
	"github.com/concord-go/concord/coordination/leasestore"
	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/internal/silence"
)

var _ leaseconfig.Opener = Opener

// options are the settings of Opener, which docs/configuration.md lists.
type options struct {
	Config `yaml:",inline"`
	// URL of the container: "https://shop.blob.core.windows.net/leases". Required. A shared access
	// signature in its query (sig=…) is used as the credential.
	URL string `yaml:"url"`
	// Account and AccountKey, in base64, are a credential. Set both or none. Without them, and
	// without a signature in URL, the default is the credential that
	// azidentity.NewDefaultAzureCredential finds, such as a workload identity, a managed identity,
	// or one from the environment; it needs https.
	Account    string `yaml:"account"`
	AccountKey string `yaml:"account-key"`
	// Install creates the container when the store is opened, unless it exists; see Store.Install.
	// Default false.
	Install bool `yaml:"install"`
}

// maxIdle bounds the idle connections that the client keeps.
const maxIdle = 10

// installTimeout bounds Install.
const installTimeout = 10 * time.Second

// Validate returns all problems at once, as coordination.ErrInvalid. The errors contain no keys or
// signatures.
func (s options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("azureblob: %w: "+format,
			append([]any{coordination.ErrInvalid}, args...)...))
	}
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		bad("URL must be set")
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" ||
		strings.Trim(u.Path, "/") == "":
		bad("URL must be that of a container, as https://shop.blob.core.windows.net/leases")
	case s.signed() && s.Account+s.AccountKey != "":
		bad("URL has a shared access signature, so Account and AccountKey must not be set")
	case u.Scheme == "http" && s.identity():
		bad("URL must be of https, since tokens of an identity are not sent without")
	}
	if (s.Account == "") != (s.AccountKey == "") {
		bad("Account and AccountKey belong together")
	} else if s.Account != "" {
		if _, err := container.NewSharedKeyCredential(s.Account, s.AccountKey); err != nil {
			bad("AccountKey is not base64")
		}
	}
	return errors.Join(append(errs, s.validate())...)
}

// signed reports whether the URL is a credential.
func (s options) signed() bool {
	u, err := url.Parse(s.URL)
	return err == nil && u.Query().Has("sig")
}

// identity reports whether the SDK must find the credential.
func (s options) identity() bool { return !s.signed() && s.Account == "" && s.AccountKey == "" }

// Opener reads the settings that docs/configuration.md lists, for a Provider or a configuration
// file, and opens a store with its own client. Without Install it opens the store also while the
// service is unavailable.
func Opener(decode func(into any) error) (func() (leasestore.Store, error), error) {
	s, err := settings.Read[options](decode)
	if err != nil {
		return nil, err
	}
	return func() (leasestore.Store, error) { return opened.As(s.open()) }, nil
}

func (s options) open() (*store, error) {
	links := &silence.Links{Pool: true}
	client, err := s.client(links)
	if err != nil {
		return nil, fmt.Errorf("azureblob: %w", err)
	}
	made, err := newStore(client, s.Config)
	if err == nil {
		made.links = links
	}
	if err == nil && s.Install {
		ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
		defer cancel()
		err = made.Install(ctx)
	}
	return made, err
}

func (s options) client(links *silence.Links) (*container.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext, transport.MaxIdleConnsPerHost = links.DialContext, maxIdle
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &http.Client{Transport: transport}}}
	switch {
	case s.signed():
		return container.NewClientWithNoCredential(s.URL, options)
	case s.identity():
		credential, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, err
		}
		return container.NewClient(s.URL, credential, options)
	}
	credential, err := container.NewSharedKeyCredential(s.Account, s.AccountKey)
	if err != nil {
		return nil, errors.New("AccountKey is not base64") // the SDK's error may contain the key
	}
	return container.NewClientWithSharedKeyCredential(s.URL, credential, options)
}
