package cockpit

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/concord-go/concord/cockpit/internal/view"
	"github.com/concord-go/concord/internal/cockpit/api"
)

// Bounds of requests to peers.
const (
	maxPeers    = 64
	peerEvery   = time.Second
	peerTimeout = 800 * time.Millisecond
	maxPeerBody = 256 << 10
)

// peers collects the views of other members from their cockpits.
type peers struct {
	h *Handler

	asking sync.Mutex // one round at a time
	mu     sync.Mutex
	at     time.Time
	said   []api.Peer
}

// last returns the answers to the last round, or an empty slice if they are more than a minute old.
// The slice is never written again.
func (p *peers) last() []api.Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.said == nil || time.Since(p.at) > time.Minute {
		return []api.Peer{}
	}
	return p.said
}

// refresh asks all peers, unless the last round is less than a second old.
func (p *peers) refresh(ctx context.Context) {
	if len(p.h.cfg.Peers) == 0 {
		return
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	p.mu.Lock()
	fresh := !p.at.IsZero() && time.Since(p.at) < peerEvery*9/10
	p.mu.Unlock()
	if fresh {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	said := make([]api.Peer, len(p.h.cfg.Peers))
	var wg sync.WaitGroup
	for i, at := range p.h.cfg.Peers {
		wg.Go(func() { said[i] = p.ask(ctx, at) })
	}
	wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said, p.at = said, time.Now()
}

// ask returns the view of one peer.
func (p *peers) ask(ctx context.Context, at string) api.Peer {
	out := api.Peer{URL: at, Members: []string{}, Lost: []string{}, Split: []string{}}
	c, err := p.read(ctx, strings.TrimSuffix(at, "/")+"/api/v1/cluster")
	if err != nil {
		out.Error = view.Cut(err.Error(), 200)
		return out
	}
	out.Self = c.Self
	for _, m := range c.Members {
		out.Members = append(out.Members, m.Address)
	}
	out.Lost = append(out.Lost, c.Lost...)
	out.Split = append(out.Split, c.Split...)
	return out
}

func (p *peers) read(ctx context.Context, at string) (c api.Cluster, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return c, err
	}
	res, err := p.h.cfg.PeerClient.Do(req)
	if err != nil {
		return c, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return c, fmt.Errorf("the peer answered with status %d", res.StatusCode)
	}
	return c, json.NewDecoder(io.LimitReader(res.Body, maxPeerBody)).Decode(&c)
}
