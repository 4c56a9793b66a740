/* net.h - what rt calls. */
#ifndef CC_NET_NET_H
#define CC_NET_NET_H

/* In a forked child: resets locks, and drops pooled objects, which are shared with the parent. */
void cc__net_forget(void);

/* Its parts. */
void cc__names_forget(void);
void cc__layers_forget(void);

#endif
