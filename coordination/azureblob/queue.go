package azureblob

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/concord-go/concord/coordination/internal/queue"
	"github.com/concord-go/concord/coordination/leasestore"
)

// queued begins the path of a lease's queue, in place of the prefix of a lease's blob.
const queued = "q-"

// Enqueue implements leasestore.Queuer.
func (s *Store) Enqueue(ctx context.Context, name string,
	p leasestore.Waiter) (ahead []leasestore.Waiter, err error) {
	err = s.changeQueue(ctx, name, func(q *queue.Queue) { ahead = q.Enqueue(p) })
	return ahead, err
}

// Leave implements leasestore.Queuer.
func (s *Store) Leave(ctx context.Context, name string, gone []leasestore.Waiter) error {
	return s.changeQueue(ctx, name, func(q *queue.Queue) { q.Leave(gone...) })
}

func (s *Store) changeQueue(ctx context.Context, name string, change func(*queue.Queue)) error {
	if _, err := s.blob(name); err != nil {
		return err
	}
	if err := queue.Change(ctx,
		cell{s.container.NewBlockBlobClient(s.prefix + queued + pathOf(name))},
		change); err != nil {
		return fmt.Errorf("azureblob: queue of lease %.80q: %w", name, err)
	}
	return nil
}

// cell is the blob of a queue.
type cell struct{ *blockblob.Client }

// Read implements queue.Cell.
func (c cell) Read(ctx context.Context) (text []byte, version string, err error) {
	text, etag, err := download(ctx, c.Client)
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return nil, "", nil
	}
	return text, string(etag), err
}

// Write implements queue.Cell.
func (c cell) Write(ctx context.Context, old string, text []byte) error {
	if _, err := upload(ctx, c.Client, old, text); err != nil {
		return outcome(err)
	}
	return nil
}
