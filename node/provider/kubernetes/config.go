package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/cluster"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/node/provider/internal/roster"
)

// errInvalid is matched by every error of an invalid Config.
var errInvalid = errors.New("kubernetes: invalid configuration")

// Config configures a provider. The zero value works in a pod.
type Config struct {
	// Client configures the connection to the API server. Default: the configuration given to a
	// pod. It must not be modified.
	Client *rest.Config `yaml:"-"`
	// Namespace is the namespace of the pods. Default: the environment variable POD_NAMESPACE, or
	// the namespace of the service account.
	Namespace string `yaml:"namespace"`
	// Pod is the name of this member's pod. Default: the environment variable POD_NAME, or the
	// hostname.
	Pod string `yaml:"pod"`
}

const (
	startTimeout  = 10 * time.Second
	callTimeout   = 3 * time.Second
	retry         = time.Second
	grace         = 5 * time.Second
	pingAfter     = 5 * time.Second // without a read
	pingTimeout   = 5 * time.Second
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// withDefaults takes unset fields from the environment.
func (c Config) withDefaults() (Config, error) {
	var errs []error
	if c.Client == nil {
		in, err := rest.InClusterConfig()
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: Client is not set: %w", errInvalid, err))
		}
		c.Client = in
	}
	if c.Namespace == "" {
		c.Namespace = os.Getenv("POD_NAMESPACE")
	}
	if c.Namespace == "" {
		data, err := os.ReadFile(namespaceFile)
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: Namespace is not set, nor POD_NAMESPACE: %w",
				errInvalid, err))
		}
		c.Namespace = strings.TrimSpace(string(data))
	}
	if c.Pod == "" {
		c.Pod = os.Getenv("POD_NAME")
	}
	if c.Pod == "" {
		host, err := os.Hostname()
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: Pod is not set, nor POD_NAME: %w", errInvalid, err))
		}
		c.Pod = host
	}
	return c, errors.Join(append(errs, c.validate())...)
}

func init() { settings.Checked(Config.validate) }

// validate returns all problems at once.
func (c Config) validate() error {
	var errs []error
	if c.Namespace != "" {
		for _, p := range validation.IsDNS1123Label(c.Namespace) {
			errs = append(errs, fmt.Errorf("%w: Namespace (%.80q): %s", errInvalid, c.Namespace, p))
		}
	}
	if c.Pod != "" {
		for _, p := range validation.IsDNS1123Subdomain(c.Pod) {
			errs = append(errs, fmt.Errorf("%w: Pod (%.80q): %s", errInvalid, c.Pod, p))
		}
	}
	return errors.Join(errs...)
}

// New returns a function that creates a provider for each incarnation of a member. The function
// returns an error if a setting is invalid, or unset and without a default outside a pod. The
// provider's StartMember fails if the API server does not list the member within ten seconds.
func New(c Config) func() (cluster.ClusterProvider, error) {
	return func() (cluster.ClusterProvider, error) {
		c, err := c.withDefaults()
		if err != nil {
			return nil, err
		}
		return roster.New(roster.Config{
			Open:         func(self roster.Self) (roster.Directory, error) { return open(c, self) },
			StartTimeout: startTimeout,
			Grace:        grace,
			Retry:        retry,
		}), nil
	}
}

func open(c Config, self roster.Self) (roster.Directory, error) {
	if err := checkLabels(self); err != nil {
		return nil, err
	}
	access := pinging(c.Client)
	web, err := rest.HTTPClientFor(access)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	client, err := clientv1.NewForConfigAndClient(access, web)
	if err != nil {
		return nil, fmt.Errorf("kubernetes: %w", err)
	}
	return &directory{cfg: c, web: web, pods: client.Pods(c.Namespace)}, nil
}

// pinging returns the configuration of a client whose connections are closed soon after they have
// fallen silent. A watch makes no requests, and client-go's own pings notice silence after 45 s.
func pinging(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	if c.Transport != nil {
		return c
	}
	if c.Proxy == nil {
		// The default. A client that names it shares no transport.
		c.Proxy = http.ProxyFromEnvironment
	}
	c.Wrap(func(t http.RoundTripper) http.RoundTripper {
		for in := t; ; {
			switch wrapped := in.(type) {
			case *http.Transport:
				wrapped.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter,
					PingTimeout: pingTimeout}
				return t
			case utilnet.RoundTripperWrapper:
				in = wrapped.WrappedRoundTripper()
			default:
				return t
			}
		}
	})
	return c
}
