/* net.h - what rt calls. */
#ifndef CC_NET_NET_H
#define CC_NET_NET_H

/* In a forked child: nobody holds a lock, and nothing that was pooled is shared with the parent. */
void cc__net_forget(void);

/* Its parts. */
void cc__names_forget(void);
void cc__layers_forget(void);

#endif
