// Package azureblob keeps leases in blobs of Azure Storage.
//
//	client, err := container.NewClient("https://shop.blob.core.windows.net/leases", credential, nil)
//	store, err := azureblob.New(client, azureblob.Config{})
//	err = store.Install(ctx) // once: creates the container
//	session, err := coordination.Open(store, coordination.Config{})
//
// # What is in the container
//
// One blob for each lease, with the record as JSON, which is replaced if its ETag is still the one that was
// read, and never deleted; one for each session, which it renews for all its leases, and deletes in the end; and one
// for each lease that sessions with Config.Fair have waited for, with their queue. Azure's own blob leases are not used: they last 15 to 60 seconds or for ever, have no
// number that grows, and two of their calls are needed where one conditional write is enough. A blob
// that somebody else has put such a lease on cannot be written: that is refused, not a holder.
//
// # Guarantees
//
// Blob storage is strongly consistent and its writes are conditional, so of all contenders one wins. No
// clock of another machine counts in that: contenders wait until they have seen the blob unchanged for the
// holder's TTL on their own clocks. Tokens rise by one. If somebody deletes a blob, they go on from the
// calendar clock of the service, in milliseconds, as they began: above all earlier ones unless the name had
// more tenures than milliseconds, or it was deleted and taken by a process that had not seen it within one second.
//
// Nothing tells of changes: a release is noticed by polling, within Config.RetryInterval; each look is a
// request that is paid for. With the service away nobody acquires or renews, and holders stop in time. After a
// customer-managed failover to a secondary region the last writes may be gone, and a lease may have two
// holders until the first one's next renewal.
//
// # Duties
//
// The identity needs to read and write blobs of the container (the role Storage Blob Data Contributor, or
// a shared access signature with r, c, w and d). The client's own retries should end within
// Config.OperationTimeout; what is cut off is found out by reading.
package azureblob
