package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/concord-go/concord/internal/cockpit/api"
)

// maxAnswer bounds the part of a response body that is read, in bytes.
const maxAnswer = 64 << 20

// noEndpoint is the answer of a cockpit to a request for another path.
const noEndpoint = "no such endpoint"

// client sends requests to one cockpit.
type client struct {
	base  string
	named string // base without its password
	token string
	http  *http.Client
	wait  func(context.Context) (context.Context, context.CancelFunc)
}

func newClient(o options, token string) client {
	if !strings.Contains(o.at, "://") {
		o.at = "http://" + o.at
	}
	named := ""
	if u, err := url.Parse(o.at); err == nil && u.Host != "" && strings.HasPrefix(u.Scheme, "http") {
		named = strings.TrimSuffix(u.Redacted(), "/")
	}
	return client{
		base: strings.TrimSuffix(o.at, "/"), named: named, token: token,
		http: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		wait: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, o.timeout)
		},
	}
}

// endpoint sends a request to an endpoint of the API, as open does.
func (c client) endpoint(ctx context.Context, method, path string, body any) (*http.Response,
	error) {
	return c.open(ctx, method, "/api/v1/"+path, body)
}

// open sends a request. It returns the response if its status is 200, and an error otherwise.
func (c client) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	if c.named == "" { // it is not shown: it may have a password
		return nil, fails(exitUsage, "-at is not a URL that begins with http:// or https://")
	}
	var raw io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		raw = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, raw)
	if err != nil {
		return nil, fails(exitUsage, "-at: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Concord-Action", "1")
	}
	res, err := c.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, fails(exitSilent, "no answer from %s: %w", c.named, err)
	}
	if res.StatusCode == http.StatusOK {
		return res, nil
	}
	defer res.Body.Close()
	return nil, c.refusal(res)
}

// refusal returns the error for a response whose status is not 200.
func (c client) refusal(res *http.Response) error {
	var e api.Error
	if json.NewDecoder(io.LimitReader(res.Body, 64<<10)).Decode(&e) != nil || e.Error == "" ||
		e.Error == noEndpoint {
		status := exitSilent
		if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
			status = exitRefused // by a proxy
		}
		return fails(status, "%s is not a cockpit: check -at (the answer was %s)", c.named,
			printable(res.Status))
	}
	status := exitSilent
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		status = exitRefused
	case http.StatusNotFound:
		status = exitNone
	case http.StatusBadRequest, http.StatusConflict, http.StatusMethodNotAllowed,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		status = exitInvalid
	}
	return fails(status, "%s", printable(e.Error))
}

// ask sends a GET request to an endpoint and decodes the response.
func ask[T any](ctx context.Context, c *ctl, path string, query url.Values) (v T, err error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return exchange[T](ctx, c, http.MethodGet, path, nil)
}

// act requests an action.
func act[T any](ctx context.Context, c *ctl, path string, body any) (v T, err error) {
	return exchange[T](ctx, c, http.MethodPost, "actions/"+path, body)
}

func exchange[T any](ctx context.Context, c *ctl, method, path string, body any) (v T, err error) {
	ctx, cancel := c.wait(ctx)
	defer cancel()
	res, err := c.endpoint(ctx, method, path, body)
	if err != nil {
		return v, err
	}
	defer res.Body.Close()
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&v); err != nil {
		return v, fails(exitSilent, "the answer of %s is not that of a cockpit: %w", c.named, err)
	}
	return v, nil
}

// pages collects items up to c.limit, and reports whether there are more.
func pages[T any](ctx context.Context, c *ctl, path string, query url.Values) (items []T, more bool,
	err error) {
	items = []T{}
	for {
		size := 500
		if c.limit > 0 {
			size = min(size, c.limit-len(items))
		}
		query.Set("limit", fmt.Sprint(size))
		page, err := ask[api.Page[T]](ctx, c, path, query)
		if err != nil {
			return nil, false, err
		}
		items = append(items, page.Items...)
		switch {
		case page.Next == "":
			return items, false, nil
		case c.limit > 0 && len(items) >= c.limit:
			return items, true, nil
		}
		query.Set("after", page.Next)
	}
}
