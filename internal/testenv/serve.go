package main

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// serve lets tests ask for something by a POST, one at a time, to the address that it returns.
func (e *environment) serve(do func(context.Context) error) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	var one sync.Mutex
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		defer one.Unlock()
		if r.Method != http.MethodPost {
			http.Error(w, "POST", http.StatusMethodNotAllowed)
			return
		}
		// Not the request's context: what is begun is ended, whoever asked.
		if err := do(context.WithoutCancel(r.Context())); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // until it is closed
	}()
	e.atEnd(func() {
		_ = server.Close()
		one.Lock() // a restart under way would leave a server behind
		<-done
	})
	return "http://" + l.Addr().String(), nil
}
