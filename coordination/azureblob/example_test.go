package azureblob_test

import (
	"context"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/concord-go/concord/coordination"
	"github.com/concord-go/concord/coordination/azureblob"
)

// A program keeps its leases in blobs of a container. Install creates the container, once.
func Example() {
	ctx := context.Background()
	var credential azcore.TokenCredential // for example of package azidentity
	client, err := container.NewClient("https://shop.blob.core.windows.net/leases", credential, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := azureblob.New(client, azureblob.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := store.Install(ctx); err != nil {
		fmt.Println(err)
		return
	}
	session, err := coordination.Open(store, coordination.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close(ctx)
	fmt.Println(session.Lease("report").Do(ctx, work))
}

func work(context.Context, *coordination.Grant) error { return nil }
