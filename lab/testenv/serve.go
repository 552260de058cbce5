package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// serve returns an address at which tests trigger do by a POST, one at a time.
func (e *environment) serve(do func(context.Context) error) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var one sync.Mutex
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			one.Lock()
			defer one.Unlock()
			if r.Method != http.MethodPost {
				http.Error(w, "POST", http.StatusMethodNotAllowed)
				return
			}
			// Do not use the request's context: an action that has begun is completed.
			if err := do(context.WithoutCancel(r.Context())); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until the listener is closed
	}()
	e.atEnd(func() {
		_ = server.Close()
		one.Lock() // wait for a restart in progress, which would leave a server behind
		<-done
	})
	return "http://" + l.Addr().String(), nil
}
