// The same as bench/syncclient.c with client-go: an informer of all pods with a work queue behind it, as
// a controller written in Go has. One JSON line for bench/sync.sh.
//
//	informer [-protobuf] [-transform] [EVENTS]
//
// -transform keeps only the fields that syncclient keeps: the best case of a careful author.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

func usage() (cpuMs, peakMb float64) {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano())
	// not u.Maxrss: that remembers the process we were forked from
	status, _ := os.ReadFile("/proc/self/status")
	for _, line := range strings.Split(string(status), "\n") {
		if kb, found := strings.CutPrefix(line, "VmHWM:"); found {
			peakMb, _ = strconv.ParseFloat(strings.Fields(kb)[0], 64)
		}
	}
	return float64(cpu.Milliseconds()), peakMb / 1024
}

func monotonic() int64 {
	var t unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return t.Nano()
}

// What syncclient.c declares.
func project(object any) (any, error) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return object, nil
	}
	kept := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID,
		ResourceVersion: pod.ResourceVersion, Labels: pod.Labels, OwnerReferences: pod.OwnerReferences,
		Annotations: map[string]string{"sent": pod.Annotations["sent"], "serial": pod.Annotations["serial"]}}}
	kept.Spec.NodeName = pod.Spec.NodeName
	for _, c := range pod.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, v1.Container{Resources: c.Resources})
	}
	return kept, nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "informer:", err)
		os.Exit(1)
	}
}

func main() {
	protobuf := flag.Bool("protobuf", false, "ask for protobuf")
	transform := flag.Bool("transform", false, "keep only what is needed")
	flag.Parse()
	wanted, _ := strconv.Atoi(flag.Arg(0))

	start := time.Now()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(err)
	config.ContentType = "application/json"
	if *protobuf {
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	client, err := kubernetes.NewForConfig(config)
	check(err)
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods().Informer()
	if *transform {
		check(informer.SetTransform(project))
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	add := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: add, DeleteFunc: add, UpdateFunc: func(_, now any) { add(now) }})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory.Start(ctx.Done())
	// WaitForCacheSync polls every 100 ms; a finer look is fairer
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	cpu, peak := usage()
	out := map[string]any{"pods": len(informer.GetStore().ListKeys()), "wall_ms": time.Since(start).Milliseconds(),
		"cpu_ms": cpu, "peak_mb": peak}

	var delays []int64
	var first time.Time
	// events of one pod may meet in the queue, but the last one is always seen
	for serial := 0; serial < wanted; {
		key, _ := queue.Get()
		object, exists, _ := informer.GetStore().GetByKey(key)
		if exists {
			if sent, err := strconv.ParseInt(object.(*v1.Pod).Annotations["sent"], 10, 64); err == nil {
				if len(delays) == 0 {
					first = time.Now()
				}
				delays = append(delays, monotonic()-sent)
				serial, _ = strconv.Atoi(object.(*v1.Pod).Annotations["serial"])
			}
		}
		queue.Forget(key)
		queue.Done(key)
	}
	if n := len(delays); n > 0 {
		sort.Slice(delays, func(a, b int) bool { return delays[a] < delays[b] })
		after, _ := usage()
		out["events"] = n
		out["events_a_second"] = float64(n) / time.Since(first).Seconds()
		out["p50_us"] = delays[n/2] / 1000
		out["p99_us"] = delays[n*99/100] / 1000
		out["cpu_us_an_event"] = (after - cpu) * 1000 / float64(n)
	}
	json.NewEncoder(os.Stdout).Encode(out)
}
