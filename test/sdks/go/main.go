// What a user of the Go SDK does in a day: the scenario of ../README.md, in Go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

const (
	tenants = 40
	users   = 5
)

type order struct {
	ID      string `json:"id"`
	Tenant  string `json:"tenant"`
	User    string `json:"user"`
	Session string `json:"session"`
	N       int    `json:"n"`
	Kind    int    `json:"kind"`
	State   string `json:"state,omitempty"`
}

type container struct{ *azcosmos.ContainerClient }

var background = context.Background()

func main() {
	credential := must(azcosmos.NewKeyCredential(os.Getenv("COSMOS_KEY")))
	client := must(azcosmos.NewClientWithKey(os.Getenv("COSMOS_ENDPOINT"), credential, nil))
	must(client.CreateDatabase(background, azcosmos.DatabaseProperties{ID: "go"}, nil))
	database := must(client.NewDatabase("go"))
	orders := create(database)
	for _, step := range []struct {
		name string
		run  func(container)
	}{{"crud", crud}, {"patch", patch}, {"batch", batch}, {"bulk", bulk}, {"queries", queries}, {"resumed", resumed}} {
		step.run(orders)
		fmt.Println("ok", step.name)
	}
	must(database.Delete(background, nil))
	fmt.Println("ok whole")
}

func create(database *azcosmos.DatabaseClient) container {
	throughput := azcosmos.NewManualThroughputProperties(30000)
	must(database.CreateContainer(background, azcosmos.ContainerProperties{
		ID: "orders",
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{
			Kind:    azcosmos.PartitionKeyKindMultiHash,
			Paths:   []string{"/tenant", "/user", "/session"},
			Version: 2,
		},
	}, &azcosmos.CreateContainerOptions{ThroughputProperties: &throughput}))
	orders := container{must(database.NewContainer("orders"))}
	expect("feed ranges", len(must(orders.ReadFeedRanges(background, nil))), 5)
	offer := must(orders.ReadThroughput(background, nil))
	manual, _ := offer.ThroughputProperties.ManualThroughput()
	expect("throughput", manual, int32(30000))
	return orders
}

func crud(orders container) {
	key := keyOf("crud", "u")
	one := order{ID: "one", Tenant: "crud", User: "u", Session: "s", N: 1}
	created := must(orders.CreateItem(background, key, text(one), nil))
	expect("read", orders.read(key, "one").N, 1)
	_, err := orders.CreateItem(background, key, text(one), nil)
	expectStatus("second create", err, 409)
	one.N = 2
	stale := &azcosmos.ItemOptions{IfMatchEtag: &created.ETag}
	must(orders.ReplaceItem(background, key, "one", text(one), stale))
	_, err = orders.ReplaceItem(background, key, "one", text(one), stale)
	expectStatus("replace with an old ETag", err, 412)
	one.N = 3
	must(orders.UpsertItem(background, key, text(one), nil))
	expect("upsert", orders.read(key, "one").N, 3)
	must(orders.DeleteItem(background, key, "one", nil))
	_, err = orders.ReadItem(background, key, "one", nil)
	expectStatus("read after delete", err, 404)
}

func patch(orders container) {
	key := keyOf("patch", "u")
	must(orders.CreateItem(background, key, text(order{ID: "p", Tenant: "patch", User: "u", Session: "s", N: 1}), nil))
	operations := azcosmos.PatchOperations{}
	operations.AppendIncrement("/n", 4)
	operations.AppendSet("/state", "paid")
	must(orders.PatchItem(background, key, "p", operations, nil))
	patched := orders.read(key, "p")
	expect("patch", []any{patched.N, patched.State}, []any{5, "paid"})
	operations.SetCondition("FROM c WHERE c.n = 1")
	_, err := orders.PatchItem(background, key, "p", operations, nil)
	expectStatus("patch whose condition is not met", err, 412)
}

func batch(orders container) {
	key := keyOf("batch", "u")
	item := func(id string) []byte {
		return text(order{ID: id, Tenant: "batch", User: "u", Session: "s"})
	}
	whole := orders.NewTransactionalBatch(key)
	whole.CreateItem(item("a"), nil)
	whole.UpsertItem(item("b"), nil)
	whole.ReadItem("a", nil)
	whole.DeleteItem("b", nil)
	expect("batch", statuses(must(orders.ExecuteTransactionalBatch(background, whole, nil))), []int32{201, 201, 200, 204})

	failing := orders.NewTransactionalBatch(key)
	failing.CreateItem(item("c"), nil)
	failing.CreateItem(item("a"), nil)
	expect("batch with a conflict", statuses(must(orders.ExecuteTransactionalBatch(background, failing, nil))),
		[]int32{424, 409})
	_, err := orders.ReadItem(background, key, "c", nil)
	expectStatus("what a failed batch created", err, 404)
}

// The SDK has no bulk requests: many at once is what its users do.
func bulk(orders container) {
	var running sync.WaitGroup
	for n := range tenants * users {
		running.Go(func() {
			one := order{ID: fmt.Sprintf("order-%d", n), Tenant: fmt.Sprintf("t%d", n/users),
				User: fmt.Sprintf("u%d", n%users), Session: "s", N: n, Kind: n % 4}
			must(orders.UpsertItem(background, keyOf(one.Tenant, one.User), text(one), nil))
		})
	}
	running.Wait()
	many := []azcosmos.ItemIdentity{}
	for n := range 50 {
		key := keyOf(fmt.Sprintf("t%d", n/users), fmt.Sprintf("u%d", n%users))
		many = append(many, azcosmos.ItemIdentity{ID: fmt.Sprintf("order-%d", n), PartitionKey: key})
	}
	expect("read many", len(must(orders.ReadManyItems(background, many, nil)).Items), 50)
}

func queries(orders container) {
	const total = tenants * users
	anywhere := azcosmos.NewPartitionKey()
	all := make([]int, total)
	for n := range all {
		all[n] = n
	}
	filtered := query[int](orders, "SELECT VALUE c.n FROM c WHERE STARTSWITH(c.id, 'order-')", anywhere, 7)
	slices.Sort(filtered)
	expect("filter", filtered, all)

	// The service refuses these through its gateway; here any client may ask.
	expect("count", query[int](orders, "SELECT VALUE COUNT(1) FROM c WHERE STARTSWITH(c.id, 'order-')", anywhere, 0), []int{total})
	expect("order", query[int](orders, "SELECT VALUE c.n FROM c WHERE STARTSWITH(c.id, 'order-') ORDER BY c.n", anywhere, 7), all)

	found := query[string](orders, "SELECT VALUE c.id FROM c WHERE c.n = @n AND c.tenant = @t", anywhere, 0,
		azcosmos.QueryParameter{Name: "@n", Value: 42}, azcosmos.QueryParameter{Name: "@t", Value: "t8"})
	expect("parameters", found, []string{"order-42"})
	expect("whole key", query[string](orders, "SELECT VALUE c.id FROM c", keyOf("t7", "u3"), 0), []string{"order-38"})
	prefix := query[int](orders, "SELECT VALUE c.n FROM c WHERE c.tenant = 't7' ORDER BY c.n", anywhere, 2)
	expect("prefix of the key", prefix, []int{35, 36, 37, 38, 39})
}

func resumed(orders container) {
	const filter = "SELECT VALUE c.n FROM c WHERE STARTSWITH(c.id, 'order-')"
	first := must(orders.NewQueryItemsPager(filter, azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{PageSizeHint: 10}).NextPage(background))
	rest := orders.NewQueryItemsPager(filter, azcosmos.NewPartitionKey(),
		&azcosmos.QueryOptions{PageSizeHint: 10, ContinuationToken: first.ContinuationToken})
	count := len(first.Items)
	for rest.More() {
		count += len(must(rest.NextPage(background)).Items)
	}
	expect("pages resumed by their token", count, tenants*users)
}

func query[T any](orders container, sql string, key azcosmos.PartitionKey, pageSize int32, parameters ...azcosmos.QueryParameter) []T {
	pager := orders.NewQueryItemsPager(sql, key,
		&azcosmos.QueryOptions{PageSizeHint: pageSize, QueryParameters: parameters})
	rows := []T{}
	for pager.More() {
		for _, item := range must(pager.NextPage(background)).Items {
			var row T
			check(json.Unmarshal(item, &row))
			rows = append(rows, row)
		}
	}
	return rows
}

func (orders container) read(key azcosmos.PartitionKey, id string) order {
	var found order
	check(json.Unmarshal(must(orders.ReadItem(background, key, id, nil)).Value, &found))
	return found
}

func statuses(response azcosmos.TransactionalBatchResponse) []int32 {
	codes := []int32{}
	for _, result := range response.OperationResults {
		codes = append(codes, result.StatusCode)
	}
	return codes
}

func keyOf(tenant, user string) azcosmos.PartitionKey {
	return azcosmos.NewPartitionKeyString(tenant).AppendString(user).AppendString("s")
}

func text(item any) []byte {
	return must(json.Marshal(item))
}

func expect(what string, found, wanted any) {
	if !reflect.DeepEqual(found, wanted) {
		check(fmt.Errorf("%s: expected %v, found %v", what, wanted, found))
	}
}

func expectStatus(what string, err error, status int) {
	var refusal *azcore.ResponseError
	if !errors.As(err, &refusal) || refusal.StatusCode != status {
		check(fmt.Errorf("%s: expected status %d, found %v", what, status, err))
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
