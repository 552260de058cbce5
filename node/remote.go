package node

import (
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/asynkron/protoactor-go/remote"
	"github.com/concord-go/concord/internal/wire"
	"github.com/concord-go/concord/node/internal/guard"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

const (
	// queueSize is allocated for every peer at once: Proto.Actor's own default takes 16 MB. It is no
	// bound.
	queueSize = 1024
	// maxBatch messages of the largest size that Concord sends stay below DefaultMaxMessage.
	maxBatch = 200
	// share of a batch that one message of Concord takes at most, with what is around its payload.
	share = wire.MaxPayload * 5 / 4
	// maxStreams per connection: a peer uses one.
	maxStreams = 16
	// pingAfter and pingTimeout find a peer that hangs within 12 s; gRPC allows no shorter interval.
	pingAfter   = 10 * time.Second
	pingTimeout = 2 * time.Second
	// dialTimeout bounds one attempt to connect. The kernel repeats a lost SYN after 1, 3, 7 and 15 seconds, and
	// gRPC's own bound is 20: a network that works again was noticed that late. Proto.Actor tries five times, with
	// two seconds in between.
	dialTimeout = 3500 * time.Millisecond
	// maxIdle is how long a connection without a stream stays open.
	maxIdle = time.Minute
	// pingMin must be below pingAfter: a server that is pinged more often than it allows hangs up.
	pingMin = 5 * time.Second
)

// Remote returns the recommended remoting configuration: the guard described in the package comment,
// message limits, keepalive at both ends, and small queues. More options are applied on top. Server and
// dial options among them are added to those here, where Proto.Actor would replace them; the guard runs
// in any case.
func Remote(cfg Config, more ...remote.ConfigOption) (*remote.Config, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	options := []remote.ConfigOption{
		remote.WithEndpointWriterQueueSize(queueSize),
		remote.WithEndpointWriterBatchSize(min(maxBatch, cfg.MaxMessage/share)),
		remote.WithEndpointManagerQueueSize(queueSize),
	}
	if cfg.Advertised != "" {
		options = append(options, remote.WithAdvertisedHost(cfg.Advertised))
	}
	options = append(options, remote.WithDialOptions()) // without Proto.Actor's own, for no TLS
	rc := remote.Configure(cfg.Host, cfg.Port, append(options, more...)...)
	g, err := newGuard(cfg, rc)
	if err != nil {
		return nil, err
	}
	rc.ServerOptions = append(append(serverOptions(cfg), g.ServerOptions()...), rc.ServerOptions...)
	rc.DialOptions = append(append(dialOptions(), g.DialOptions()...), rc.DialOptions...)
	g.CallWith(rc.DialOptions)
	return rc, nil
}

// newGuard reads the files of TLS and of the secret, and checks that the certificate is that of the
// member.
func newGuard(cfg Config, rc *remote.Config) (*guard.Guard, error) {
	gc := guard.Config{
		Advertised: rc.AdvertisedHost, Secret: cfg.SecretFile, Public: cfg.Public,
		MaxEnvelopes: rc.EndpointWriterBatchSize,
	}
	if cfg.TLS != nil {
		gc.Files = &guard.Files{Cert: cfg.TLS.Cert, Key: cfg.TLS.Key, Authorities: cfg.TLS.Authorities}
	}
	g, err := guard.New(gc, &process)
	if err == nil {
		if address := knownAddress(rc); address != "" {
			err = g.Check(address)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return g, nil
}

// knownAddress returns the address of the member if it is known before it listens, else "".
func knownAddress(rc *remote.Config) string {
	switch {
	case rc.AdvertisedHost != "":
		return rc.AdvertisedHost
	case rc.Port != 0 && net.ParseIP(rc.Host) != nil:
		return net.JoinHostPort(rc.Host, strconv.Itoa(rc.Port))
	}
	return ""
}

func serverOptions(cfg Config) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(cfg.MaxMessage),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingMin, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout, MaxConnectionIdle: maxIdle}),
	}
}

func dialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: pingAfter, Timeout: pingTimeout, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: dialTimeout}),
		grpc.WithChainStreamInterceptor(closeFailed),
	}
}
