package node

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"

	"github.com/concord-go/concord/internal/settings"
	"github.com/concord-go/concord/node/internal/guard"
)

const (
	// queueSize is allocated in advance for every peer: Proto.Actor's default takes 16 MB. It is
	// not a limit.
	queueSize = 1024
	// maxBatch is how many messages are sent in one batch, and pieceSize how many bytes of them: no
	// more than a member accepts that does not list this one yet. A single message may be larger;
	// the largest that Concord sends fits into minMessage.
	maxBatch  = 200
	pieceSize = 512 << 10
	// maxStreams is the limit of streams per connection; a peer uses one.
	maxStreams = 16
	// pingAfter and pingTimeout detect a peer that hangs within 12 s; gRPC allows no shorter
	// interval.
	pingAfter   = 10 * time.Second
	pingTimeout = 2 * time.Second
	// dialTimeout bounds one connection attempt. The kernel resends a lost SYN after 1, 3, 7 and 15
	// seconds, and gRPC's own bound is 20 seconds: without dialTimeout, it would take that long to
	// notice that a network works again.
	dialTimeout = 3500 * time.Millisecond
	// dialWindow is the window of a connector. After it, Proto.Actor pauses for two seconds and
	// tries again, five times in all. Then it drops the messages to the peer, and connects again
	// with the next message.
	dialWindow = 8 * time.Second
	// maxIdle is how long a connection without a stream stays open.
	maxIdle = time.Minute
	// settle is how long the first messages of a member wait at another one that does not list it
	// yet.
	settle = 1500 * time.Millisecond
	// pingMin must be below pingAfter: a server that is pinged more often than it allows closes the
	// connection.
	pingMin = 5 * time.Second
)

// redial is the pause between two attempts to connect to a peer.
var redial = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
	MaxDelay: time.Second}

// Remote returns the recommended remoting configuration: the guard described in the package
// comment, message limits, keepalive on both ends, and small queues. More options are applied on
// top. Server and dial options in more are added to the recommended ones, where Proto.Actor would
// replace them; the guard always runs.
func Remote(cfg Config, more ...remote.ConfigOption) (*remote.Config, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(more, func(o remote.ConfigOption) bool { return o == nil }) {
		return nil, fmt.Errorf("%w: an option is nil", ErrInvalid)
	}
	cfg = cfg.withDefaults()
	options := []remote.ConfigOption{
		remote.WithEndpointWriterQueueSize(queueSize),
		remote.WithEndpointWriterBatchSize(maxBatch),
		remote.WithEndpointManagerQueueSize(queueSize),
	}
	if cfg.Advertised != "" {
		options = append(options, remote.WithAdvertisedHost(cfg.Advertised))
	}
	options = append(options, remote.WithDialOptions()) // drops the default, which turns TLS off
	host := cfg.Host
	if strings.Contains(host, ":") {
		host = "[" + host + "]" // Proto.Actor appends a colon and the port
	}
	rc := remote.Configure(host, cfg.Port, append(options, more...)...)
	g, err := newGuard(cfg, rc)
	if err != nil {
		return nil, err
	}
	rc.ServerOptions = append(append(serverOptions(cfg), g.ServerOptions()...), rc.ServerOptions...)
	rc.DialOptions = append(append(dialOptions(), g.DialOptions()...), rc.DialOptions...)
	g.CallWith(rc.DialOptions)
	return rc, nil
}

// newGuard reads the TLS and secret files, and checks that the certificate matches the address of
// the member.
func newGuard(cfg Config, rc *remote.Config) (*guard.Guard, error) {
	gc := guard.Config{
		Advertised: rc.AdvertisedHost, Secret: cfg.SecretFile, Public: cfg.Public,
		MaxEnvelopes: rc.EndpointWriterBatchSize, MaxRate: cfg.MaxRate, Settle: settle,
	}
	if cfg.TLS != nil {
		gc.Files = &guard.Files{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key,
			Authorities: cfg.TLS.Authorities}
	}
	g, err := guard.New(gc, &process)
	if err == nil {
		if address := knownAddress(rc); address != "" {
			err = g.Check(address)
		}
	}
	if err != nil {
		return nil, settings.Join(fmt.Errorf("%w: %w", ErrInvalid, err))
	}
	return g, nil
}

// knownAddress returns the address of the member if it is known before the member listens,
// otherwise "".
func knownAddress(rc *remote.Config) string {
	switch {
	case rc.AdvertisedHost != "":
		return rc.AdvertisedHost
	case rc.Port != 0 && net.ParseIP(strings.Trim(rc.Host, "[]")) != nil:
		return rc.Address()
	}
	return ""
}

func serverOptions(cfg Config) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(cfg.MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingMin,
			PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout,
			MaxConnectionIdle: maxIdle}),
	}
}

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: pingAfter, Timeout: pingTimeout, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: redial, MinConnectTimeout: dialTimeout}),
		grpc.WithChainStreamInterceptor(connector{dialWindow, &ends}.open),
	}
}
