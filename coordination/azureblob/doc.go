// Package azureblob keeps leases in blobs of Azure Storage.
//
//	client, err := container.NewClient("https://shop.blob.core.windows.net/leases", credential, nil)
//	store, err := azureblob.New(client, azureblob.Config{})
//	err = store.Install(ctx) // once: creates the container
//	session, err := coordination.Open(store, coordination.Config{})
//
// # What is in the container
//
// Each lease has one blob, with the record as JSON. A write replaces it if its ETag is still the
// one that was read; it is never deleted. Each session has one blob, which it renews for all its
// leases and deletes when it ends. A document (leasestore.Documents) is the content of a blob of
// its own, whose name Store.DocumentBlob returns, and its version is the ETag. Azure's own blob
// leases are not used: they last 15 to 60 seconds or forever, have no number that grows, and need
// two calls where one conditional write is enough. A blob on which another program has placed such
// a lease cannot be written: the write is refused, and no holder is shown.
//
// # Guarantees
//
// Blob storage is strongly consistent and its writes are conditional, so exactly one contender
// wins. No clock of another machine matters for that: contenders wait until they have seen the blob
// unchanged for the holder's TTL on their own clocks. Tokens rise by one. If someone deletes a
// blob, tokens continue from the wall clock of the service, in milliseconds, which is also where
// they began. They are then above all earlier tokens, unless the name had more tenures than
// milliseconds, or the blob was deleted and taken within one second by a process that had not seen
// it.
//
// The store gets no notification of changes: a release is noticed by polling, within
// Config.RetryInterval, and each read is a billed request. While the service is unavailable no
// session acquires or renews, and holders stop in time. After a customer-managed failover to a
// secondary region the last writes may be lost, and a lease may have two holders until the first
// one's next renewal.
//
// # Duties
//
// The identity must be allowed to read and write blobs of the container (the role Storage Blob Data
// Contributor, or a shared access signature with r, c, w and d). The client's own retries, of reads
// only, should end within Config.OperationTimeout; the outcome of a write that is cut off is
// resolved by reading.
//
// docs/stores.md compares the stores, and docs/leases.md is the guide to leases.
package azureblob
