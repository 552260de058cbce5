package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/concord-go/concord/crdt"
	"github.com/concord-go/concord/distributeddata"
)

// patience is how long a request waits for a majority.
const patience = 5 * time.Second

// Carts are the carts of all customers. An add of an item wins over a concurrent remove.
var Carts = distributeddata.NewPrefix("cart-", crdt.ORSet[string]{})

// Answer is the body of every successful response.
type Answer struct {
	Items []string `json:"items"`
	// At is "majority", or names the part of the cluster that was reached.
	At string `json:"at"`
}

// API serves the carts of the whole cluster from one member:
//
//	GET    /carts/{customer}               200
//	PUT    /carts/{customer}/items/{item}  200, or 202 if the change is stored on this member only
//	DELETE /carts/{customer}/items/{item}  the same
//
// Both changes are idempotent, so a client may repeat a request that was not answered, at any
// member. A change answered with 202 reaches the other members when they can be reached again.
func API(dd *distributeddata.Replicator) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /carts/{customer}", func(w http.ResponseWriter, r *http.Request) {
		items, at, err := show(r.Context(), dd, r.PathValue("customer"))
		answer(w, http.StatusOK, items, at, err)
	})
	mux.HandleFunc("PUT /carts/{customer}/items/{item}",
		func(w http.ResponseWriter, r *http.Request) {
			change(w, r, dd, func(w *crdt.Writer, items *crdt.ORSet[string]) {
				items.Add(w, r.PathValue("item"))
			})
		})
	mux.HandleFunc("DELETE /carts/{customer}/items/{item}",
		func(w http.ResponseWriter, r *http.Request) {
			change(w, r, dd, func(w *crdt.Writer, items *crdt.ORSet[string]) {
				items.Remove(w, r.PathValue("item"))
			})
		})
	return mux
}

// change changes a cart at a majority. Without a majority the change is kept on this member and
// replicated later.
func change(w http.ResponseWriter, r *http.Request, dd *distributeddata.Replicator,
	f func(*crdt.Writer, *crdt.ORSet[string])) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	key, status, at := Carts.Key(r.PathValue("customer")), http.StatusOK, "majority"
	_, err := key.Update(ctx, dd, func(w *crdt.Writer, items *crdt.ORSet[string]) error {
		f(w, items)
		return nil
	}, distributeddata.Majority)
	if q, ok := errors.AsType[*distributeddata.QuorumError](err); ok {
		status, at, err = http.StatusAccepted, fmt.Sprintf("%d of %d replicas", q.Answered,
			q.Needed), nil
	}
	items := crdt.ORSet[string]{}
	if err == nil {
		items, err = local(r.Context(), dd, key)
	}
	answer(w, status, items, at, err)
}

// show reads a cart at a majority, or as this member knows it if there is no majority.
func show(ctx context.Context, dd *distributeddata.Replicator,
	customer string) (crdt.ORSet[string], string, error) {
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key := Carts.Key(customer)
	items, err := key.Get(short, dd, distributeddata.Majority)
	switch {
	case errors.Is(err, distributeddata.ErrQuorum):
		items, err = local(ctx, dd, key)
		return items, "this member", err
	case errors.Is(err, distributeddata.ErrNotFound):
		err = nil // an empty cart has no entry
	}
	return items, "majority", err
}

// local reads a cart without waiting.
func local(ctx context.Context, dd *distributeddata.Replicator,
	key distributeddata.Key[crdt.ORSet[string]]) (crdt.ORSet[string], error) {
	items, err := key.Get(ctx, dd)
	if errors.Is(err, distributeddata.ErrNotFound) {
		err = nil
	}
	return items, err
}

func answer(w http.ResponseWriter, status int, items crdt.ORSet[string], at string, err error) {
	switch {
	case errors.Is(err, distributeddata.ErrInvalid) || errors.Is(err, distributeddata.ErrLimit):
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case err != nil: // the change may have happened: the client may repeat it
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	all := slices.AppendSeq([]string{}, items.All())
	_ = json.NewEncoder(w).Encode(Answer{all, at}) // the client has gone if it fails
}
